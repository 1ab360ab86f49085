// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import System

/// File in memory, sealed by the kernel against every change (memfd_create(2), F_ADD_SEALS). A process passes it to the
/// next one by its descriptor alone, without a name that other processes could open.
package enum SealedMemory {
    /// The most bytes that are read back.
    package static let limit = 16 << 20

    /// Returns a new descriptor of a sealed file with these bytes, closed on exec; throws the system's reason. `name`
    /// is visible in /proc only.
    package static func make(_ bytes: [UInt8], named name: String) throws(SealedMemoryError) -> Int32 {
        let descriptor = unsafe clinux_memory_file(name)
        guard descriptor >= 0 else { throw .system(errno: -descriptor) }
        let file = Descriptor(owning: descriptor)
        do throws(SystemError) {
            try file.writeAll(bytes)
        } catch {
            throw .system(errno: error.code)
        }
        let sealed = clinux_seal(descriptor)
        guard sealed == 0 else { throw .system(errno: -sealed) }
        return file.release()
    }

    /// Returns the content of a sealed file. Throws if the descriptor is not of a sealed file, whose content could
    /// change during the read.
    package static func read(_ descriptor: Int32) throws(SealedMemoryError) -> [UInt8] {
        guard clinux_is_sealed(descriptor) == 1 else { throw .notSealed }
        do throws(SystemError) {
            guard let size = Int(exactly: try FileSystem.status(of: descriptor).st_size), size <= limit else {
                throw SystemError(code: EFBIG)
            }
            var bytes: [UInt8] = []
            while bytes.count < size {
                let more = try DescriptorIO.read(from: descriptor, at: bytes.count, atMost: size - bytes.count)
                guard !more.isEmpty else { throw SystemError(code: EIO) }
                bytes += more
            }
            return bytes
        } catch {
            throw error.code == EFBIG ? .tooLarge : .system(errno: error.code)
        }
    }
}

/// Reasons why there is no sealed file.
package enum SealedMemoryError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The descriptor is of something that can change.
    case notSealed
    /// A call failed with that `errno`.
    case system(errno: Int32)
    /// The content is longer than ``SealedMemory/limit``.
    case tooLarge

    /// The reason, for the log.
    package var description: String {
        switch self {
        case .notSealed: "the descriptor is of no sealed file in memory"
        case .system(let errno): "a file in memory cannot be had: \(SystemError.numberedMessage(errno))"
        case .tooLarge: "the file in memory has more than \(SealedMemory.limit >> 20) MiB"
        }
    }
}
