-- Gives the version and the entries of the plugin ARGV[6].
local refused = refusal()
if refused then return refused end
local prefix = ARGV[6] .. '/'
local reply = {'loaded', redis.call('HGET', state, '!version/' .. ARGV[6]) or ''}
local all = redis.call('HGETALL', state)
for at = 1, #all, 2 do
    if all[at]:sub(1, #prefix) == prefix then
        reply[#reply + 1] = all[at]:sub(#prefix + 1)
        reply[#reply + 1] = all[at + 1]
    end
end
return reply
