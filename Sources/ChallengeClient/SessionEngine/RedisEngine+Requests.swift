// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

extension RedisEngine {
    /// Has the engine carry out `request` for the session of `name`; `answered` gets `nil` where no answer came in time or the engine is
    /// away. Never from within this call.
    package func ask(_ request: EngineRequest, for name: String, _ answered: @escaping (EngineReply?) -> Void) {
        run(EngineCall(request, for: name, plan, now: wallClock())) { [weak self] reply in
            let meaning = reply.flatMap(EngineAnswer.reply)
            if reply != nil, meaning == nil { self?.protest() }
            answered(meaning.map { $0.naming(request) })
        }
    }

    /// All latches, with the count of their changes.
    package func latches(_ answered: @escaping ((count: UInt64, latches: [SharedLatch])?) -> Void) {
        run(.latches(plan)) { [weak self] reply in
            guard let self, let reply else { return answered(nil) }
            let meaning = EngineAnswer.latches(reply, now: wallClock())
            if meaning == nil { protest() }
            answered(meaning)
        }
    }

    /// Closes latches that no login under a lease has closed; whether that was done.
    package func close(_ latches: [SharedLatch], _ answered: @escaping (Bool) -> Void) {
        guard let call = EngineCall.close(latches, plan, now: wallClock()) else { return answered(true) }
        run(call) { answered($0.flatMap(EngineAnswer.count) != nil) }
    }

    /// Opens all latches of a challenge; how many there were.
    package func open(challenge: String, _ answered: @escaping (Int?) -> Void) {
        run(.open(challenge, plan)) { answered($0.flatMap(EngineAnswer.count)) }
    }
}

extension EngineReply {
    /// The same, with the generation as the request named it: Lua has no numbers for the largest.
    fileprivate func naming(_ request: EngineRequest) -> EngineReply {
        guard case .done = self else { return self }
        switch request {
        case .extend(_, let generation, _), .publish(_, let generation, _, _), .fail(_, let generation, _, _, _, _),
            .drop(let generation):
            return .done(generation: generation)
        case .acquire, .offer, .fetch: return self
        }
    }
}
