// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd

/// Tells the service manager, over the socket that `NOTIFY_SOCKET` names, how the service is.
///
/// A send is one small datagram; it can wait for as long as the manager's queue is full.
package struct ServiceNotifier: Sendable {
    /// What became of a notification.
    package enum Outcome: Equatable, Sendable {
        /// The manager has the datagram.
        case sent
        /// No manager asked for notifications (`NOTIFY_SOCKET` is not set).
        case notSupervised
        /// Nothing was sent.
        case failed(NotifyFailure)
    }

    /// The notifier of this process.
    package init() {}

    /// Sends `states` in one datagram.
    @discardableResult
    package func send(_ states: NotifyState...) -> Outcome {
        send(states)
    }

    /// Has the manager keep a descriptor across a restart, in the place of others of that name (FileDescriptorStoreMax= of the unit).
    /// It has a descriptor of its own then; the caller's may be closed.
    @discardableResult
    package func store(_ descriptor: Int32, as name: DescriptorName) -> Outcome {
        // In two datagrams: one that travels with a descriptor only adds.
        let forgotten = send(.forgetDescriptors(name: name))
        guard forgotten == .sent else { return forgotten }
        return send([.storeDescriptors(name: name)], with: [descriptor])
    }

    /// Waits until the manager has taken note of all that was sent, at most so many milliseconds.
    package func settle(milliseconds: UInt64 = 2_000) { _ = sd_notify_barrier(0, milliseconds * 1_000) }

    /// Sends `states` in one datagram, and descriptors along with it.
    @discardableResult
    package func send(_ states: [NotifyState], with descriptors: [Int32] = []) -> Outcome {
        let text: String
        do {
            text = try NotifyState.render(states)
        } catch {
            return .failed(error)
        }
        // The environment stays as it is: every later notification needs it. Helpers that are started get one of
        // their own.
        let result =
            descriptors.isEmpty
            ? unsafe sd_notify(0, text)
            : unsafe sd_pid_notify_with_fds(0, 0, text, descriptors, UInt32(clamping: descriptors.count))
        if result > 0 { return .sent }
        return result == 0 ? .notSupervised : .failed(.system(errno: 0 &- result))
    }
}
