-- A sample fetch for haproxy-lua.cfg, `lua.canonical`: the signed text of a request, in a form that HAProxy can check.
--
-- Loaded from @DIR@ by haproxy-lua.cfg, which sets KEY_FILE if there is one key for all. It needs no rendering.
-- Returns one of
--   the sign in capital letters (32), the canonical string, and the key if there is one for all;
--   `unsigned`, if there are no parameters;
--   status and code, for example `403 time_missing`.
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
