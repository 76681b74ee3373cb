-- Writes a flight and renews the lease; gives the fields that were removed as expired.
-- ARGV: 6 the number of the flight, 7 `!active`, 8 `!shortest`, 9 whether memory is needed, then operations with their arguments.
local refused = refusal()
if refused then return refused end
if not shared and tonumber(redis.call('HGET', state, '!number')) >= tonumber(ARGV[6]) then return {'written'} end
-- A server whose memory is full refuses a script whose first write needs memory. Deletions have to pass: they free some.
if ARGV[9] == '0' then redis.call('PEXPIRE', state, keep_ms) end
redis.call('HSET', state, '!active', ARGV[7], '!shortest', ARGV[8])

-- A shared write that is sent twice is done twice, which is the same as once.
local reply = {'written'}
if shared then
    reply[2] = tostring(redis.call('HINCRBY', state, '!number', 1))
else
    redis.call('HSET', state, '!number', ARGV[6])
end
local run = {}

-- Fields and values that are set together: a command of the server costs more than what it writes.
local set = {}
local function flush()
    if #set > 0 then redis.call('HSET', state, unpack(set)) end
    set = {}
end

-- clear PLUGIN
function run.c(plugin)
    local prefix = plugin .. '/'
    for _, field in ipairs(redis.call('HKEYS', state)) do
        if field:sub(1, #prefix) == prefix then redis.call('HDEL', state, field) end
    end
    return 1
end

-- version PLUGIN VERSION, where an empty one removes it
function run.v(plugin, version)
    if version == '' then
        redis.call('HDEL', state, '!version/' .. plugin)
    else
        redis.call('HSET', state, '!version/' .. plugin, version)
    end
    return 2
end

-- set FIELD VALUE
function run.s(field, value)
    -- Far below the most values that fit on the stack of Lua.
    if #set >= 1000 then flush() end
    set[#set + 1] = field
    set[#set + 1] = value
    return 2
end

-- touch FIELD EXPIRES USED
function run.t(field, expires, used)
    local old = redis.call('HGET', state, field)
    if old then
        local times = old:match('^%a %d+ ')
        local rest = old:find('\n', 1, true)
        if times and rest then redis.call('HSET', state, field, times .. expires .. ' ' .. used .. old:sub(rest)) end
    end
    return 3
end

-- delete FIELD
function run.d(field)
    redis.call('HDEL', state, field)
    return 1
end

-- sweep AT ACTIVE
function run.w(at, active)
    at, active = tonumber(at), tonumber(active)
    local all = redis.call('HGETALL', state)
    for index = 1, #all, 2 do
        local field = all[index]
        local kind, ttl, expires, used = all[index + 1]:match('^(%a) (%d+) ([%d-]+) (%d+)\n')
        -- What was used since that moment was alive then.
        if kind and field:sub(1, 1) ~= '!' then
            local last = math.huge
            if kind == 'O' then last = tonumber(expires) or 0 end
            if kind == 'D' then last = math.max(tonumber(expires) or 0, active + tonumber(ttl)) end
            if tonumber(used) < at and math.min(last, active + ttl_ms) <= at then
                redis.call('HDEL', state, field)
                reply[#reply + 1] = field
            end
        end
    end
    return 2
end

local at = 10
while ARGV[at] do
    local name = ARGV[at]
    if name ~= 's' then flush() end
    at = at + 1 + run[name](ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
flush()
hold()
return reply
