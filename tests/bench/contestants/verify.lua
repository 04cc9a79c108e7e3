-- The verification of both nginx and HAProxy: reads the parameters of query and form body, checks `time`, and returns
-- the canonical string of the default sign profile (`plain`). The caller has the key and the hash function.
--
-- Loaded from @DIR@ by nginx-lua.conf (LuaJIT) and verify_haproxy.lua (Lua 5.3); runs in both. It needs no rendering.
-- It does not check that decoded text is UTF-8: the signature does not need it, and it would cost time.
-- Plain searches and short loops take the place of patterns, since LuaJIT compiles them. A request is verified without
-- yielding, so all requests share the two work tables.

local byte, char, concat, find, gsub, sub =
    string.byte, string.char, table.concat, string.find, string.gsub, string.sub
local tonumber = tonumber

local WINDOW_MS = 60000
local MAX_PARAMS = 256

local M = {}

-- Decoded names in ascending order, and for each its pair as sent.
local names, pairs_as_sent = {}, {}

local IS_HEX = {}
for digit in ("0123456789ABCDEFabcdef"):gmatch(".") do
    IS_HEX[byte(digit)] = true
end

-- Whether every escape, from the percent sign at `at` on, has two hex digits.
local function is_well_formed(text, at)
    repeat
        local high, low = byte(text, at + 1, at + 2)
        if not (low and IS_HEX[high] and IS_HEX[low]) then
            return false
        end
        at = find(text, "%", at + 3, true)
    until not at
    return true
end

local function unescape(digits)
    return char(tonumber(digits, 16))
end

-- Form-decodes a text whose escapes are well formed.
local function decode(text)
    if find(text, "+", 1, true) then
        text = gsub(text, "+", " ")
    end
    if find(text, "%", 1, true) then
        text = gsub(text, "%%(%x%x)", unescape)
    end
    return text
end

-- The time in milliseconds, or nil if it is not one.
local function milliseconds(digits)
    local length = #digits
    if length <= 10 then
        return nil
    end
    for i = 1, length do
        local digit = byte(digits, i)
        if digit < 48 or digit > 57 then
            return nil
        end
    end
    return tonumber(digits)
end

local count, time, sign

-- Inserts the pairs of `text`, sorted by name; equal names keep their order. Returns an error code, or nil.
local function add(text)
    local at, length = 1, #text
    local percent = find(text, "%", 1, true)
    local is_encoded = percent or find(text, "+", 1, true)
    if percent and not is_well_formed(text, percent) then
        return "params_malformed"
    end
    while at <= length do
        local stop = find(text, "&", at, true) or length + 1
        if stop > at then
            local pair = sub(text, at, stop - 1)
            local equals = find(pair, "=", 1, true)
            local name
            if equals then
                name = sub(pair, 1, equals - 1)
            else
                name, equals = pair, #pair + 1
                pair = pair .. "="
            end
            if is_encoded then
                name = decode(name)
            end
            if name == "sign" then
                if sign then
                    return "param_duplicated"
                end
                sign = decode(sub(pair, equals + 1))
            else
                if name == "time" then
                    if time then
                        return "param_duplicated"
                    end
                    time = decode(sub(pair, equals + 1))
                end
                if count == MAX_PARAMS then
                    return "params_too_many"
                end
                local i = count
                while i > 0 and names[i] > name do
                    names[i + 1], pairs_as_sent[i + 1] = names[i], pairs_as_sent[i]
                    i = i - 1
                end
                names[i + 1], pairs_as_sent[i + 1] = name, pair
                count = count + 1
            end
        end
        at = stop + 1
    end
end

-- Returns the canonical string without the key, and the given sign; without parameters, two nils; on failure, false and
-- a code. `query` and `body` may be nil; `now` is in milliseconds.
function M.canonical(query, body, now)
    count, time, sign = 0, nil, nil
    local wrong = query and add(query) or body and add(body)
    if wrong then
        return false, wrong
    end
    if count == 0 and not sign then
        return nil, nil
    end
    if not time then
        return false, "time_missing"
    end
    local given = milliseconds(time)
    if not given then
        return false, "time_invalid"
    end
    if given - now > WINDOW_MS or now - given > WINDOW_MS then
        return false, "time_out_of_window"
    end
    if not sign then
        return false, "sign_missing"
    end
    return concat(pairs_as_sent, "&", 1, count), sign
end

-- The HTTP status of each code.
M.status = {
    app_missing = 400,
    param_duplicated = 400,
    params_malformed = 400,
    params_too_many = 400,
    time_invalid = 400,
    sign_mismatch = 403,
    sign_missing = 403,
    time_missing = 403,
    time_out_of_window = 403,
    app_not_found = 404,
    body_too_large = 413,
}

return M
