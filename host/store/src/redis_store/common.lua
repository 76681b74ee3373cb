-- The start of every script of a session.
-- KEYS: the hash of the session, its lease.
-- ARGV: the holder; in milliseconds the term of the lease, how long the hash is kept, the session's time to live, and the time.
--
-- Fields of the hash: `!format`, `!holder`, `!number` (of the last flight), `!active`, `!shortest`; `!version/PLUGIN`; and of each
-- entry `PLUGIN/KEY` with the value `KIND TTL EXPIRES USED\nBYTES`, where KIND is D (default), O (own) or S (session), and EXPIRES
-- is `-` for none. No plugin id contains `!` or `/`.
local state, lease = KEYS[1], KEYS[2]
local holder, lease_ms, keep_ms, ttl_ms, now_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

-- Hosts that share a session have one holder among them: it has no lease, and none of them is fenced off by another. `!number` counts their
-- writes, so that each sees when another one has written.
local shared = holder:sub(1, 7) == 'shared '

local function hold()
    redis.call('SET', lease, holder, 'PX', lease_ms)
    redis.call('PEXPIRE', state, keep_ms)
end

local function create()
    redis.call('HSET', state, '!format', '1', '!holder', holder, '!number', '0', '!active', now_ms, '!shortest', '')
    hold()
end

-- The reply to a caller that must neither read nor write; nil for the owner. Where the hash is gone and nobody else has the session,
-- the caller owns an empty one from now on, and is told.
local function refusal()
    local owner = redis.call('HGET', state, '!holder')
    if owner == holder then return nil end
    if shared and owner == '' then
        redis.call('HSET', state, '!holder', holder)
        return nil
    end
    local held = redis.call('GET', lease)
    if owner then return {'fenced', held or owner} end
    if held and held ~= holder then return {'fenced', held} end
    create()
    return {'lost'}
end
