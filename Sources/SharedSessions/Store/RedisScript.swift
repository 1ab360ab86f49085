// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Redis

/// The one Lua script that carries out every request atomically. It is sent in full at most once.
///
/// A session has two keys. The first is a hash with `fence`, the count of leases; `token`, `leased` (its generation)
/// and `until`, the lease, which stays until another one is granted, since an expired one only *may* be replaced;
/// `ended` and `last`, token and generation of the lease that ended last, so that a lost reply can be repeated;
/// `failure`, `paused` (until when) and `failures` (consecutive ones). It is kept for 400 days after its last change,
/// longer than any session. The second is the session, which expires with its lifetime. Sessions of one account have a
/// third in common, the *turn*: the token of the one lease among them, which expires with it, so that a credential is
/// not sent for two scopes at once. A missing count, at first or after a loss of data, begins with the store's clock,
/// so that a generation is never used twice.
///
/// The latches are a hash by digest, an order by closing time, and the count of changes, which is kept forever and
/// begins with the clock as well. The used one-time codes are a sorted set: seeds by the end of their last used step,
/// in ms since 1970.
///
/// Numbers are written with `%.0f`, as Lua's own way rounds them. Times are milliseconds by the session store's clock; requests name
/// durations from now.
enum RedisScript {
    /// Limit of stored latches, and of used one-time codes. Beyond it the oldest is dropped.
    static let mostLatches = 1024

    /// Poll interval in ms while another session of the account holds the lease; Redis sends no event at its end.
    static let turnWait = 500

    /// Number of keys: two of the session, three of the latches, one of the codes, one of the account.
    static let keyCount = 7

    /// Digest by which the session store knows the script.
    static let digest = ScriptDigest.of(text)

    /// Text of the script. `KEYS`: state, session, latches, their order, count of changes, used codes, turn. `ARGV`: operation, the session's
    /// channel, the channel of latches and codes, and the arguments of the request.
    static let text = common + attempts + sessions

    private static let common = """
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
        local op, a, b, c, d, e = ARGV[1], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
        local function digits(n) return string.format('%.0f', n) end
        local function publish(channel, n) redis.call('PUBLISH', channel, digits(n)) end
        local function count() return tonumber(redis.call('GET', KEYS[5]) or 0) end
        local function changed()
          local n = redis.call('GET', KEYS[5])
          n = (n and tonumber(n) or now) + 1
          redis.call('SET', KEYS[5], digits(n))
          publish(ARGV[3], n)
        end

        """

    private static let attempts = """
        local function open(digest)
          redis.call('HDEL', KEYS[3], digest)
          redis.call('ZREM', KEYS[4], digest)
        end
        local function each(visit)
          for _, digest in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
            local reason, closed, opens, challenge =
              string.match(redis.call('HGET', KEYS[3], digest) or '', '^(%S+) (%S+) (%S+) (.*)$')
            if not reason then open(digest)
            elseif opens == '-' or tonumber(opens) > now then visit(digest, challenge, reason, tonumber(closed), tonumber(opens))
            else visit(digest) end
          end
        end
        local function close(first)
          if #ARGV < first + 4 then return end
          for i = first, #ARGV - 4, 5 do
            local closed = digits(now - tonumber(ARGV[i + 3]))
            local opens = ARGV[i + 4] == '' and '-' or digits(now + tonumber(ARGV[i + 4]))
            redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 2] .. ' ' .. closed .. ' ' .. opens .. ' ' .. ARGV[i + 1])
            redis.call('ZADD', KEYS[4], closed, ARGV[i])
          end
          each(function(digest, challenge) if not challenge then open(digest) end end)
          local extra = redis.call('ZCARD', KEYS[4]) - \(mostLatches)
          if extra > 0 then
            for _, digest in ipairs(redis.call('ZRANGE', KEYS[4], 0, extra - 1)) do open(digest) end
          end
          changed()
        end
        local function use(first)
          for i = first, #ARGV - 1, 2 do
            local known = redis.call('ZSCORE', KEYS[6], ARGV[i])
            if not known or tonumber(known) < tonumber(ARGV[i + 1]) then redis.call('ZADD', KEYS[6], ARGV[i + 1], ARGV[i]) end
          end
          redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', digits(now - 7200000))
          redis.call('ZREMRANGEBYRANK', KEYS[6], 0, -\(mostLatches + 1))
          redis.call('PEXPIRE', KEYS[6], '7200000')
          changed()
        end
        if op == 'read' then
          local found = {}
          each(function(digest, challenge, reason, closed, opens)
            if not challenge then return end
            for _, part in ipairs({digest, challenge, reason, math.max(now - closed, 0), opens and opens - now or ''}) do
              found[#found + 1] = part
            end
          end)
          return {count(), found, redis.call('ZRANGE', KEYS[6], 0, -1, 'WITHSCORES')}
        elseif op == 'close' then
          close(4)
          return {'done', 0}
        elseif op == 'use' then
          use(4)
          return {'done', 0}
        elseif op == 'open' then
          local opened = 0
          each(function(digest, challenge)
            if challenge == a then
              open(digest)
              opened = opened + 1
            end
          end)
          if opened > 0 then changed() end
          return {'done', opened}
        end

        """

    private static let sessions = """
        local function put(...)
          redis.call('HSET', KEYS[1], ...)
          redis.call('PEXPIRE', KEYS[1], '34560000000')
        end
        local names = {'fence', 'token', 'leased', 'until', 'ended', 'last', 'failure', 'paused', 'failures'}
        local values, s = redis.call('HMGET', KEYS[1], unpack(names)), {}
        for i, name in ipairs(names) do s[name] = values[i] end
        local held = redis.call('HMGET', KEYS[2], 'generation', 'until', 'bytes')
        local generation = held[3] and tonumber(held[2]) > now and tonumber(held[1])
        local function hold(n, bytes, life)
          redis.call('HSET', KEYS[2], 'generation', digits(n), 'until', digits(now + life), 'bytes', bytes)
          redis.call('PEXPIRE', KEYS[2], digits(math.max(life, 1)))
        end
        local function drop(...) redis.call('HDEL', KEYS[1], ...) end
        local function following(n) return math.max(s.fence and tonumber(s.fence) or now, n) + 1 end
        local function isLeased(token, n) return s.token == token and tonumber(s.leased) == n end
        local function hasEnded(token, n) return s.ended == token and tonumber(s.last) == n end
        local function take(token, life)
          if life > 0 then redis.call('SET', KEYS[7], token, 'PX', digits(life)) else redis.call('DEL', KEYS[7]) end
        end
        local function yield(token) if redis.call('GET', KEYS[7]) == token then redis.call('DEL', KEYS[7]) end end
        local function later(n) return generation and generation > n and {'session', generation, held[3]} end

        if op == 'acquire' then
          local after, token, life = tonumber(a), b, tonumber(c)
          local found = later(after)
          if found then return found end
          local turn = redis.call('GET', KEYS[7])
          if s.token == token and (not turn or turn == token) then
            put('until', digits(now + life))
            take(token, life)
            return {'granted', tonumber(s.leased), count()}
          end
          if s.paused and tonumber(s.paused) > now then return {'failed', s.failure, tonumber(s.paused) - now} end
          if s.token and tonumber(s['until']) > now then return {'wait', tonumber(s['until']) - now} end
          if turn and turn ~= token then return {'wait', math.min(redis.call('PTTL', KEYS[7]), \(turnWait))} end
          local n = following(after)
          take(token, life)
          put('fence', digits(n), 'token', token, 'leased', digits(n), 'until', digits(now + life))
          return {'granted', n, count()}
        elseif op == 'extend' then
          local token, n, life = a, tonumber(b), tonumber(c)
          if not isLeased(token, n) then return {'stale'} end
          put('until', digits(now + life))
          local turn = redis.call('GET', KEYS[7])
          if not turn or turn == token then take(token, life) end
          return {'done', n}
        elseif op == 'publish' then
          local token, n, bytes, life = a, tonumber(b), c, tonumber(d)
          yield(token)
          if isLeased(token, n) or not s.fence then
            hold(n, bytes, life)
            drop('token', 'leased', 'until', 'failure', 'paused', 'failures')
            put('fence', s.fence or digits(math.max(now, n)), 'ended', token, 'last', digits(n))
            publish(ARGV[2], n)
            return {'done', n}
          end
          return hasEnded(token, n) and {'done', n} or {'stale'}
        elseif op == 'fail' then
          local token, n, failure, pause, longest = a, tonumber(b), c, tonumber(d), tonumber(e)
          yield(token)
          if hasEnded(token, n) then return {'done', n} end
          close(9)
          if not isLeased(token, n) then return {'stale'} end
          drop('token', 'leased', 'until')
          put('ended', token, 'last', digits(n))
          if pause > 0 then
            local failures = tonumber(s.failures or 0) + 1
            local rest = math.min(pause * 2 ^ (failures - 1), longest)
            put('failure', failure, 'paused', digits(now + math.floor(rest)), 'failures', digits(failures))
          end
          publish(ARGV[2], n)
          return {'done', n}
        elseif op == 'offer' then
          local after, bytes, life = tonumber(a), b, tonumber(c)
          local found = later(after)
          if found then return found end
          local n = following(after)
          hold(n, bytes, life)
          if s.token then yield(s.token) end
          drop('token', 'leased', 'until', 'failure', 'paused', 'failures')
          put('fence', digits(n))
          publish(ARGV[2], n)
          return {'done', n}
        elseif op == 'fetch' then
          return later(tonumber(a)) or {'nothing'}
        elseif op == 'drop' then
          local n = tonumber(a)
          local isThere = generation and generation <= n
          if not isThere and not s.failures then return {'nothing'} end
          if isThere then redis.call('DEL', KEYS[2]) end
          drop('failure', 'paused', 'failures')
          publish(ARGV[2], n)
          return {'done', n}
        end
        return redis.error_reply('ERR no such request')
        """
}
