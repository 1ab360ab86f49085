// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Credentials
internal import Glibc
internal import Logging
internal import Secrets
internal import Settings
internal import Synchronization
internal import System
internal import Systemd

/// Thread that stores the sessions of this process with the service manager whenever they change.
///
/// The next process thus gets the sessions even if this one ends without warning.
final class SessionPersister: Sendable {
    private struct State: Sendable {
        var fingerprints = SessionFingerprints()
        /// The image that the manager has, unencrypted.
        var stored: Secret?
        var isStopped = false
    }

    /// The name of the stored descriptor (`FDNAME=`).
    static let name = DescriptorName(rawValue: "countersign-sessions")
    /// Pause before a write, because one login often causes several changes.
    private static let pause = Duration.milliseconds(100)

    private let handover: SessionHandover
    private let notifier: ServiceNotifier
    private let logger: Logger
    private let state = Mutex(State())
    private let wakeup = ThreadSemaphore()
    private let stopped = CountDownLatch()
    private let isScheduled = Atomic(false)

    init(context: DaemonContext, notifier: ServiceNotifier, logger: Logger) {
        handover = SessionHandover(context: context)
        self.notifier = notifier
        self.logger = logger
    }

    /// Replaces the fingerprints by those of the logins of `upstreams`.
    func setUpstreams(_ upstreams: [UpstreamPlan], of settings: Settings) {
        let attempts = handover.context.attempts
        let fingerprints = SessionFingerprints(upstreams) { attempts.digest(of: $0) }
        state.withLock { $0.fingerprints = fingerprints }
    }

    /// Restores the sessions that the manager has stored, and makes the manager drop them. Called before the first
    /// caller is accepted.
    func restore(_ descriptors: [Int32]) {
        guard !descriptors.isEmpty else { return }
        let fingerprints = state.withLock { $0.fingerprints }
        for descriptor in descriptors {
            defer { close(descriptor) }
            do {
                let outcome = try handover.restore(try SealedMemory.read(descriptor), fingerprints)
                logger.notice("sessions taken over", metadata: ["count": "\(outcome.restored)"])
                for (challenge, reason) in outcome.refused {
                    logger.info(
                        "session not taken over", metadata: ["challenge": "\(challenge)", "reason": "\(reason)"])
                }
            } catch {
                logger.warning("the stored sessions cannot be taken over", metadata: ["reason": "\(error)"])
            }
        }
        if let name = Self.name { notifier.send(.forgetDescriptors(name: name)) }
    }

    /// Starts the thread if there is a service manager. Throws if the thread cannot be started.
    func start() throws(ThreadError) {
        guard Process.environment["NOTIFY_SOCKET"] != nil else { return }
        handover.context.services.gate.watch { [weak self] in self?.scheduleWrite() }
        try startThread { [self] in
            while true {
                wakeup.wait()
                if stopped.wait(within: Self.pause) { return }
                isScheduled.store(false, ordering: .sequentiallyConsistent)
                write()
            }
        }
        scheduleWrite()
    }

    /// Schedules a write, because sessions may have changed.
    func scheduleWrite() {
        if !isScheduled.exchange(true, ordering: .sequentiallyConsistent) { wakeup.signal() }
    }

    /// Writes the sessions a last time and stops. Returns true if the manager has sessions.
    @discardableResult
    func finish() -> Bool {
        guard Process.environment["NOTIFY_SOCKET"] != nil else { return false }
        write()
        return stop()
    }

    /// Stops, and makes the manager drop the sessions: they end with this process.
    func forget() {
        guard stop(), let name = Self.name else { return }
        notifier.send(.forgetDescriptors(name: name))
        notifier.settle()
    }

    /// Stops all writes. Returns true if the manager has sessions, after it has processed all notifications.
    private func stop() -> Bool {
        let hasSessions = state.withLock { state in
            state.isStopped = true
            return state.stored != nil
        }
        stopped.countDown()
        wakeup.signal()
        if hasSessions { notifier.settle() }
        return hasSessions
    }

    /// Sends the sessions to the manager if they have changed.
    private func write() {
        guard let name = Self.name else { return }
        // Under the lock to the end: of two concurrent writes either could arrive last.
        state.withLock { state in
            guard !state.isStopped else { return }
            let image = handover.image(state.fingerprints)
            guard image != state.stored else { return }
            guard let image else {
                state.stored = nil
                notifier.send(.forgetDescriptors(name: name))
                return
            }
            do {
                guard let sealed = handover.sealed(image) else { throw CompositionError("they cannot be sealed") }
                let descriptor = try SealedMemory.make(sealed, named: name.rawValue)
                defer { close(descriptor) }
                if case .failed(let failure) = notifier.store(descriptor, as: name) { throw failure }
                // Only now: a write that failed is tried again, at the end of the process at the latest.
                state.stored = image
            } catch {
                logger.warning("the sessions could not be stored for a restart", metadata: ["reason": "\(error)"])
            }
        }
    }
}
