// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Descriptors of a loop: the interest of their owners, and the kernel's registrations.
///
/// The two may differ in one direction: the kernel may watch for reading without current interest. libcurl unregisters
/// and registers its socket again with every transfer, and a keep-alive connection is idle between requests. As long as
/// nothing arrives meanwhile, this costs no `epoll_ctl`. If something arrives, the registration is reduced then,
/// because level-triggered epoll would report the event at every turn. Interest in writing is dropped at once, because
/// an idle socket is nearly always writable.
@safe
struct Poller: ~Copyable {
    /// Event for an interested owner.
    struct Delivery {
        var handler: any ReadinessHandler
        var descriptor: Int32
        var events: Readiness
    }

    private struct Record {
        var handler: (any ReadinessHandler)?
        /// Interest of the owner.
        var wanted: UInt32 = 0
        /// Events that the kernel watches for; 0 means that the descriptor is not registered.
        var kernel: UInt32 = 0
        /// Count of the uses of this descriptor number.
        ///
        /// Part of each event's data, so that an event for a former use of the number does not reach the current owner.
        var generation: UInt32 = 0
    }

    /// Number of `epoll_ctl` calls.
    private(set) var registrations = 0
    /// True if a registration failed and its owner must be notified.
    var hasRefused: Bool { !refused.isEmpty }

    private let epoll: Int32
    private let events: UnsafeMutablePointer<clinux_event>
    private var records: [Record] = []
    private var refused: [UInt64] = []

    private static let mailbox = UInt64.max
    private static let write = Interest.write.rawValue
    private static let always = Readiness([.error, .hangUp, .refused]).rawValue

    /// Creates the epoll instance and registers the mailbox's eventfd.
    init(mailbox: Int32) throws(EventLoopError) {
        let epoll = try EventLoopError.check(clinux_epoll_create(), "epoll_create1")
        // Edge-triggered, so that each signal wakes the loop once and the counter need not be read.
        let result = clinux_epoll_control(
            epoll, EPOLL_CTL_ADD, mailbox, EPOLLIN.rawValue | EPOLLET.rawValue, Self.mailbox)
        guard result == 0 else {
            close(epoll)
            throw EventLoopError(call: "epoll_ctl", errno: -result)
        }
        self.epoll = epoll
        unsafe events = .allocate(capacity: Int(CLINUX_EVENTS))
        unsafe events.initialize(repeating: clinux_event(), count: Int(CLINUX_EVENTS))
    }

    deinit {
        unsafe events.deallocate()
        close(epoll)
    }

    // The following methods return the former handler: its `deinit` may call the loop, so it must not run while this
    // value is being changed.

    @inline(__always)
    mutating func watch(
        _ fd: Int32, for interest: Interest, handler: any ReadinessHandler
    ) -> (any ReadinessHandler)? {
        guard let index = UInt32(exactly: fd).map(Int.init) else {
            assertionFailure("no descriptor: \(fd)")
            return nil
        }
        while records.count <= index { records.append(Record()) }
        var former: (any ReadinessHandler)?
        if records[index].handler !== handler {
            former = handler
            swap(&records[index].handler, &former)
        }
        want(interest.rawValue, at: index)
        return former
    }

    mutating func unwatch(_ fd: Int32) -> (any ReadinessHandler)? {
        guard records.indices.contains(Int(fd)) else { return nil }
        if records[Int(fd)].kernel != 0 { register(0, at: Int(fd)) }
        return forget(fd)
    }

    mutating func forget(_ fd: Int32) -> (any ReadinessHandler)? {
        guard records.indices.contains(Int(fd)) else { return nil }
        let former = records[Int(fd)].handler
        records[Int(fd)] = Record(generation: records[Int(fd)].generation &+ 1)
        return former
    }

    /// Stops all watching.
    mutating func unwatchAll() -> [any ReadinessHandler] {
        records.indices.compactMap { unwatch(Int32($0)) }
    }

    mutating func suspend(_ fd: Int32) {
        guard records.indices.contains(Int(fd)) else { return }
        want(0, at: Int(fd))
    }

    /// Waits, and returns the number of events that `take` can return.
    func wait(milliseconds: Int32) -> Int {
        let count = unsafe clinux_epoll_wait(epoll, events, milliseconds)
        // A signal ends the wait early. Any other error means that the epoll descriptor itself is invalid.
        precondition(count >= 0 || count == -EINTR, "epoll_wait: error \(-count)")
        return Int(max(count, 0))
    }

    /// Returns the event at an index of the last wait, if its owner is still interested.
    mutating func take(_ index: Int) -> Delivery? {
        let data = unsafe events[index].data
        guard data != Self.mailbox else { return nil }
        return unsafe delivery(data, events[index].events)
    }

    /// Returns an error event for the next descriptor that the kernel refused to register.
    mutating func takeRefused() -> Delivery? {
        while let data = refused.popLast() {
            if let delivery = delivery(data, Readiness([.error, .refused]).rawValue) { return delivery }
        }
        return nil
    }

    /// Returns true if the event at that index belongs to the mailbox.
    func isMailbox(_ index: Int) -> Bool {
        unsafe events[index].data == Self.mailbox
    }

    private mutating func delivery(_ data: UInt64, _ happened: UInt32) -> Delivery? {
        let index = Int(UInt32(truncatingIfNeeded: data))
        guard index < records.count, records[index].generation == UInt32(truncatingIfNeeded: data >> 32) else {
            return nil
        }
        let wanted = records[index].wanted
        let kernel = records[index].kernel
        if wanted == 0 {
            // The interest is empty: here a suspended descriptor is really unregistered.
            if kernel != 0 { register(0, at: index) }
            return nil
        }
        if happened & kernel & ~wanted != 0 { register(wanted, at: index) }
        let told = happened & (wanted | Self.always)
        guard told != 0, let handler = records[index].handler else { return nil }
        return Delivery(handler: handler, descriptor: Int32(index), events: Readiness(rawValue: told))
    }

    @inline(__always)
    private mutating func want(_ wanted: UInt32, at index: Int) {
        records[index].wanted = wanted
        let kernel = records[index].kernel
        let missing = wanted & ~kernel
        let harmful = kernel & ~wanted & Self.write
        guard missing | harmful != 0 else { return }
        register(wanted == 0 ? kernel & ~Self.write : wanted, at: index)
    }

    /// Registers `mask` with the kernel, or unregisters if the mask is empty.
    private mutating func register(_ mask: UInt32, at index: Int) {
        let fd = Int32(index)
        let data = UInt64(records[index].generation) << 32 | UInt64(UInt32(fd))
        let known = records[index].kernel != 0
        records[index].kernel = mask
        if mask == 0 {
            // Fails for a descriptor that is already closed, and then nothing is left to do.
            _ = control(EPOLL_CTL_DEL, fd, 0, data)
            return
        }
        var result = control(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, mask, data)
        // The owner closed or opened the descriptor without a notification.
        if result == -ENOENT { result = control(EPOLL_CTL_ADD, fd, mask, data) }
        if result == -EEXIST { result = control(EPOLL_CTL_MOD, fd, mask, data) }
        if result != 0 {
            records[index].kernel = 0
            refused.append(data)
        }
    }

    private mutating func control(_ operation: Int32, _ fd: Int32, _ mask: UInt32, _ data: UInt64) -> Int32 {
        registrations += 1
        return clinux_epoll_control(epoll, operation, fd, mask, data)
    }
}
