// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Flow-control window of one HTTP/2 stream (RFC 9113 §5.2).
///
/// libcurl 7.88 grants 32 MiB, 8.1 and later 10 MiB, without an option for it. libcurl continues to read for a paused
/// transfer, because data of other streams follows, and buffers what arrives: a caller that does not read would cost as
/// much memory as the window. 7.88 also copies the whole buffer each time the transfer resumes for a moment.
///
/// Hence this module defines the two functions of libnghttp2 with which libcurl sets the window; the dynamic linker
/// finds symbols of the program before those of libraries (ld.so(8)). They replace the two sizes above by a moderate
/// window and change nothing else. They are not called if libcurl is bound to another libnghttp2.
package enum StreamWindow {
    /// Window size in bytes: twice the default of RFC 9113 §6.9.2, or 4 MiB per second over 30 ms.
    package static let size: UInt32 = 128 * 1024

    private static let excessive: [UInt32] = [32 * 1024 * 1024, 10 * 1024 * 1024]

    /// Returns the window to use in place of the one that libcurl requests.
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

private let submitSettings = unsafe libraryFunction("nghttp2_submit_settings", as: SubmitSettings.self)
private let setWindow = unsafe libraryFunction("nghttp2_session_set_local_window_size", as: SetWindow.self)
/// NGHTTP2_ERR_INVALID_STATE, for a missing library, which could not have called.
private let invalidState: Int32 = -519

/// Submits SETTINGS, with a moderate initial window for each stream.
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

/// Sets a window; libcurl closes a stream's window while its transfer is paused.
///
/// Stream 0 is the connection, whose window must hold those of all streams.
@c(nghttp2_session_set_local_window_size)
package func nghttp2SessionSetLocalWindowSize(
    _ session: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ size: Int32
) -> Int32 {
    guard let setWindow = unsafe setWindow else { return invalidState }
    let moderate = stream == 0 ? size : Int32(clamping: StreamWindow.moderate(UInt32(clamping: size)))
    return unsafe setWindow(session, flags, stream, moderate)
}
