-- Releases the lease. What the writer has sent and arrives later is refused. Nothing is left of a thread that has nothing.
if refusal() then return {'refused'} end
redis.call('DEL', lease)
if redis.call('HEXISTS', thread, 'lines') == 0 and redis.call('HEXISTS', thread, 'access') == 0 then
    redis.call('DEL', thread)
else
    redis.call('HSET', thread, 'writer', '')
end
return {'released'}
