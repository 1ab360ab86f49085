// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One request's body on disk: its file, and its share of the budget of all, which it gives back when it goes.
final class SpooledBody {
    private let file: any ReplayFile
    private let spool: ReplaySpool
    private var reserved = 0

    init(file: any ReplayFile, spool: ReplaySpool) {
        self.file = file
        self.spool = spool
    }

    deinit { spool.giveBack(reserved) }

    /// Puts `bytes` at `offset`. False where the budget is used up or the file system refuses; the spool has taken note.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard spool.reserve(bytes.count) else { return false }
        reserved += bytes.count
        do throws(ReplayFileError) {
            try unsafe file.write(bytes, at: offset)
        } catch {
            spool.failed(.writing(error.number))
            return false
        }
        spool.worked()
        return true
    }

    /// Fills `buffer` with what was put at `offset`. False where the file system refuses; the spool has taken note.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        do throws(ReplayFileError) {
            try unsafe file.read(into: buffer, at: offset)
            return true
        } catch {
            spool.failed(.reading(error.number))
            return false
        }
    }
}
