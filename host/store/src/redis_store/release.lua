-- Releases the lease. A flight that arrives later finds another holder. What is empty or has expired is removed, everything else
-- is kept for the rest of the session's time to live.
if redis.call('HGET', state, '!holder') ~= holder then return {'refused'} end
redis.call('DEL', lease)
local left = tonumber(redis.call('HGET', state, '!active')) + ttl_ms - tonumber(now_ms)
if redis.call('HLEN', state) <= 5 or left <= 0 then
    redis.call('DEL', state)
else
    redis.call('PEXPIRE', state, string.format('%.0f', left))
    redis.call('HSET', state, '!holder', '')
end
return {'released'}
