-- Acquires the lease of a session that nobody has, and gives what is recorded about it. One that has expired starts empty.
local held = redis.call('GET', lease)
if held and not (shared and held == holder) then
    return {'leased', held, string.format('%.0f', redis.call('PTTL', lease))}
end
local format = redis.call('HGET', state, '!format')
if not format and redis.call('EXISTS', state) == 1 then return {'format', 'none'} end
if format and format ~= '1' then return {'format', format} end
if format and tonumber(redis.call('HGET', state, '!active')) + ttl_ms <= tonumber(now_ms) then
    redis.call('DEL', state)
    format = false
end
if format then
    redis.call('HSET', state, '!holder', holder)
    if not shared then redis.call('HSET', state, '!number', '0') end
    hold()
else
    create()
end
local recorded = redis.call('HMGET', state, '!active', '!shortest', '!number')
return {'opened', recorded[1], recorded[2], redis.call('HLEN', state) > 5 and '1' or '0', recorded[3]}
