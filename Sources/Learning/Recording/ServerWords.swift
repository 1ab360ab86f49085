// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Texts in quotation marks or between tags in the pages and scripts of a recording, and the values of inputs.
///
/// A configuration may repeat such a text, because the server shows it to everybody who wants to log in.
struct ServerWords {
    /// The longest text, in bytes.
    private static let longest = 40

    private var words: Set<String> = []

    /// Collects the texts of the responses of `entries`, without those that only repeat what a request sent.
    init(_ entries: some Sequence<HARRecording.Entry>) {
        var typed: Set<String> = []
        for entry in entries {
            typed.formUnion(entry.body.pairs.map(\.value))
            words.formUnion(Self.words(of: entry.responseBody).subtracting(typed))
        }
    }

    /// Returns true if the server sent that text. The empty text and flags of a browser, `on` and `true`, count as sent.
    func contains(_ text: String) -> Bool { ["", "on", "true", "false"].contains(text) || words.contains(text) }

    private static func words(of body: [UInt8]) -> Set<String> {
        let pieces = body.split { "\"'`<>".utf8.contains($0) }.filter { $0.count <= longest }
        let values = HTMLPage(parsing: body).forms.flatMap { $0.inputs.map(\.value) }
        return Set(pieces.map { String(decoding: $0, as: UTF8.self) } + values)
    }
}
