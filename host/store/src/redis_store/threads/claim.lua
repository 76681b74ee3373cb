-- Reserves a thread for a writer, whose host is reached at ARGV[4]. From here on no earlier one can write.
local held = redis.call('GET', lease)
if held and held ~= writer then return {'leased', held} end
redis.call('HSET', thread, 'writer', writer, 'address', ARGV[4])
redis.call('SET', lease, writer, 'PX', lease_ms)
return {'claimed'}
