// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A path with its query, as a request's target has it.
enum PathText {
    static func write(_ sentence: inout Sentence) {
        for _ in 0...sentence.choices.below(3) {
            sentence.put("/")
            sentence.put(sentence.choices.pick(segments))
        }
        guard sentence.choices.once(in: 3) else { return }
        sentence.put("?")
        sentence.put(sentence.choices.pick(queries))
    }

    private static let segments: [StaticString] = [
        "", "a", "accounts", "x.html", ".", "..", "%41", "%2e%2E", "%2f", "%00", "%C3%A9", "a;b=c", "a:b@c",
        "!$&'()*+,;=",
        "~-._", "A", "%25", "%2561",
    ]
    private static let queries: [StaticString] = [
        "", "a=b", "a=b&c=d", "?", "/../", "ids[]=1", "{}|^`", "%20", "a=%3D+x", "q='x'",
    ]
}
