-- Adds the lines ARGV[5] and following, the first of which has the number ARGV[4], and renews the lease. The same lines sent twice are there
-- once.
local refused = refusal()
if refused then return refused end
local first, has = tonumber(ARGV[4]), tonumber(redis.call('HGET', thread, 'lines') or '0')
local last = first + #ARGV - 5
if has == last then return {'written'} end
if has ~= first - 1 then return {'lost'} end
local bytes = 0
for at = 5, #ARGV do
    redis.call('XADD', records, string.format('%.0f-0', first + at - 5), 'line', ARGV[at])
    bytes = bytes + #ARGV[at] + 1
end
redis.call('HSET', thread, 'lines', string.format('%.0f', last), 'written', now_ms)
redis.call('HINCRBY', thread, 'bytes', bytes)
redis.call('SET', lease, writer, 'PX', lease_ms)
return {'written'}
