// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Credentials
internal import Glibc
internal import Logging
internal import Secrets
internal import Settings
internal import Synchronization
internal import Systemd

/// Sees to it that the service manager always has the sessions of this process for the next one, also where this one ends without
/// warning: writes them anew, on a thread of its own, when they have changed.
final class SessionKeeper: Sendable {
    private struct State: Sendable {
        var fingerprints = SessionFingerprints()
        /// What the manager has, in the clear.
        var stored: Secret?
        var isOver = false
    }

    /// Under what name the manager keeps them (`FDNAME=`).
    static let name = DescriptorName(rawValue: "countersign-sessions")
    /// How long further changes are waited for, in microseconds: one login often brings several.
    private static let pause: UInt32 = 100_000

    private let handover: SessionHandover
    private let notifier: ServiceNotifier
    private let logger: Logger
    private let state = Mutex(State())
    private let wish = Semaphore()
    private let isWished = Atomic(false)

    init(world: World, notifier: ServiceNotifier, logger: Logger) {
        handover = SessionHandover(world: world)
        self.notifier = notifier
        self.logger = logger
    }

    /// The logins that stand ready from now on.
    func serves(_ upstreams: [UpstreamPlan], of settings: Settings) {
        let attempts = handover.world.attempts
        let fingerprints = SessionFingerprints(upstreams) { attempts.digest(of: $0) }
        state.withLock { $0.fingerprints = fingerprints }
    }

    /// Takes up the sessions that the manager has kept, ahead of the first caller, and has it forget them.
    func takeUp(_ descriptors: [Int32]) {
        guard !descriptors.isEmpty else { return }
        let fingerprints = state.withLock { $0.fingerprints }
        for descriptor in descriptors {
            defer { close(descriptor) }
            do {
                let outcome = try handover.takeUp(try SealedMemory.read(descriptor), fingerprints)
                logger.notice("sessions taken over", metadata: ["count": "\(outcome.taken)"])
                for (challenge, reason) in outcome.refused {
                    logger.info(
                        "session not taken over", metadata: ["challenge": "\(challenge)", "reason": "\(reason)"])
                }
            } catch {
                logger.warning("the sessions that were kept cannot be taken over", metadata: ["reason": "\(error)"])
            }
        }
        if let name = Self.name { notifier.send(.forgetDescriptors(name: name)) }
    }

    /// Begins to keep them, where there is a manager. Throws where there can be no thread for it.
    func begin() throws(ThreadError) {
        guard Process.environment["NOTIFY_SOCKET"] != nil else { return }
        handover.world.services.gate.watch { [weak self] in self?.touch() }
        try startThread { [self] in
            while true {
                wish.wait()
                if state.withLock({ $0.isOver }) { return }
                usleep(Self.pause)
                isWished.store(false, ordering: .sequentiallyConsistent)
                keep()
            }
        }
        touch()
    }

    /// Something may have changed.
    func touch() {
        if !isWished.exchange(true, ordering: .sequentiallyConsistent) { wish.signal() }
    }

    /// Keeps them a last time, as they are now. Whether the manager has some.
    @discardableResult
    func finish() -> Bool {
        guard Process.environment["NOTIFY_SOCKET"] != nil else { return false }
        keep()
        return end()
    }

    /// Has the manager forget them: they end with this process.
    func forget() {
        guard end(), let name = Self.name else { return }
        notifier.send(.forgetDescriptors(name: name))
        notifier.settle()
    }

    /// Writes no more. Whether the manager has some, all that was sent to it being taken note of.
    private func end() -> Bool {
        let hasSome = state.withLock { state in
            state.isOver = true
            return state.stored != nil
        }
        wish.signal()
        if hasSome { notifier.settle() }
        return hasSome
    }

    /// Under the lock from beginning to end: two that write at once would leave either.
    private func keep() {
        guard let name = Self.name else { return }
        state.withLock { state in
            guard !state.isOver else { return }
            let image = handover.image(state.fingerprints)
            guard image != state.stored else { return }
            state.stored = image
            guard let image else {
                notifier.send(.forgetDescriptors(name: name))
                return
            }
            do {
                guard let sealed = handover.sealed(image) else { throw CompositionError("they cannot be sealed") }
                let descriptor = try SealedMemory.make(sealed, named: name.rawValue)
                defer { close(descriptor) }
                if case .failed(let failure) = notifier.store(descriptor, as: name) { throw failure }
            } catch {
                logger.warning("sessions are not kept for a restart", metadata: ["reason": "\(error)"])
            }
        }
    }
}
