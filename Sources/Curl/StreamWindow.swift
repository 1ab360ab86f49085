// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// How far a server may send ahead on one stream of HTTP/2 (RFC 9113 §5.2).
///
/// libcurl 7.88 allows 32 MiB, 8.1 and later 10 MiB, and it has no option for that. Of a transfer that is paused it goes on to
/// take what comes, because bytes of other streams lie behind, and keeps it in memory: a caller that does not read would
/// cost as much as the window is long. 7.88 also copies all of it each time that the transfer goes on for a moment.
///
/// Hence the two functions of libnghttp2 by which libcurl says how long the window is are found here first, as the program
/// stands before its libraries where names are looked up (ld.so(8)). They put a moderate window in place of the two lengths
/// above, and change nothing else. Where libcurl was bound to another libnghttp2 they are not called.
package enum StreamWindow {
    /// Twice the default of RFC 9113 §6.9.2, in bytes: 4 MiB a second over 30 ms.
    package static let size: UInt32 = 128 * 1024

    private static let excessive: [UInt32] = [32 * 1024 * 1024, 10 * 1024 * 1024]

    /// The window in place of one that libcurl asks for.
    fileprivate static func moderate(_ window: UInt32) -> UInt32 { excessive.contains(window) ? size : window }
}

/// `nghttp2_settings_entry`.
private struct SettingsEntry {
    var identifier: Int32
    var value: UInt32

    /// SETTINGS_INITIAL_WINDOW_SIZE.
    static let initialWindow: Int32 = 4
}

private typealias SubmitSettings = @convention(c) (OpaquePointer?, UInt8, UnsafeRawPointer?, Int) -> Int32
private typealias SetWindow = @convention(c) (OpaquePointer?, UInt8, Int32, Int32) -> Int32

private let submitSettings = unsafe next("nghttp2_submit_settings", as: SubmitSettings.self)
private let setWindow = unsafe next("nghttp2_session_set_local_window_size", as: SetWindow.self)
/// NGHTTP2_ERR_INVALID_STATE, for a library that is not there and so cannot have called.
private let invalidState: Int32 = -519

/// The library's own function of that name, behind ours (RTLD_NEXT).
private func next<Function>(_ name: String, as type: Function.Type) -> Function? {
    guard let symbol = unsafe dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else { return nil }
    return unsafe unsafeBitCast(symbol, to: type)
}

/// Queues SETTINGS, which end with what libcurl wants and begin with how long the window of each stream is.
@c(nghttp2_submit_settings)
package func nghttp2SubmitSettings(
    _ session: OpaquePointer?, _ flags: UInt8, _ entries: UnsafeRawPointer?, _ count: Int
) -> Int32 {
    guard let submitSettings = unsafe submitSettings else { return invalidState }
    guard let entries = unsafe entries else { return unsafe submitSettings(session, flags, nil, count) }
    var copy = (0..<count).map { index in
        unsafe entries.load(fromByteOffset: index * MemoryLayout<SettingsEntry>.stride, as: SettingsEntry.self)
    }
    for index in copy.indices where copy[index].identifier == SettingsEntry.initialWindow {
        copy[index].value = StreamWindow.moderate(copy[index].value)
    }
    return unsafe copy.withUnsafeBytes { unsafe submitSettings(session, flags, $0.baseAddress, count) }
}

/// Changes a window: libcurl shuts that of a stream when its transfer pauses, and opens it again. Stream 0 is the connection,
/// whose window has to hold those of all streams.
@c(nghttp2_session_set_local_window_size)
package func nghttp2SessionSetLocalWindowSize(
    _ session: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ size: Int32
) -> Int32 {
    guard let setWindow = unsafe setWindow else { return invalidState }
    let moderate = stream == 0 ? size : Int32(clamping: StreamWindow.moderate(UInt32(clamping: size)))
    return unsafe setWindow(session, flags, stream, moderate)
}
