-- Puts the stream KEYS[4], which has ARGV[4] lines of ARGV[5] bytes, in the place of the lines.
local refused = refusal()
if refused then return refused end
redis.call('RENAME', KEYS[4], records)
redis.call('HSET', thread, 'lines', ARGV[4], 'bytes', ARGV[5], 'written', now_ms)
return {'replaced'}
