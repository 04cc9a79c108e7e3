-- A sample fetch for haproxy-lua.cfg, `lua.canonical`: what a request signs, put so that HAProxy can do the rest.
--
-- Loaded from @DIR@ by haproxy-lua.cfg, which names the file of the key in KEY_FILE where there is one key for all.
-- It needs no rendering.
-- Gives one of
--   the sign in capital letters (32), the canonical string, the key if it is known here;
--   `unsigned`, when there is no parameter;
--   status and code, as in `403 time_missing`.
-- All but the first are shorter than 32 characters.

local verify = require("verify")
local canonical, status = verify.canonical, verify.status
local clock, upper = core.now, string.upper

local key_file = os.getenv("KEY_FILE")
local key = key_file and assert(io.open(key_file)):read("*a"):match("^%S+") or ""

local problems = {}
for code, its_status in pairs(status) do
    problems[code] = its_status .. " " .. code
end

core.register_fetches("canonical", function(txn)
    local fetch, now = txn.f, clock()
    local signed, sign = canonical(fetch:query(), fetch:req_body(), now.sec * 1000 + now.usec / 1000)
    if signed then
        return #sign == 32 and upper(sign) .. signed .. key or problems.sign_mismatch
    end
    return signed == nil and "unsigned" or problems[sign]
end)
