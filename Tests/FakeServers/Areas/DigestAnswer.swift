// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto

/// The value of `Authorization: Digest`, as a server takes it apart (RFC 7616 §3.4).
struct DigestAnswer {
    /// What RFC 7616 §3.4 forbids and this holds.
    let breach: String?
    private var values: [String: String] = [:]

    init(parsing text: String) {
        var values: [String: String] = [:]
        var breach: String?
        var rest = text[...]
        while !rest.isEmpty {
            rest = rest.drop { $0 == " " || $0 == "," }
            guard let equals = rest.firstIndex(of: "=") else { break }
            let name = String(rest[..<equals])
            rest = rest[rest.index(after: equals)...]
            let isQuoted = rest.first == "\""
            var value = ""
            if isQuoted {
                rest.removeFirst()
                while let sign = rest.popFirst(), sign != "\"" {
                    value.append(sign == "\\" ? rest.popFirst() ?? sign : sign)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.dropFirst(value.count)
            }
            if values[name] != nil { breach = "\(name) came twice" }
            if isQuoted == ["algorithm", "nc", "qop", "userhash", "username*"].contains(name) {
                breach = "\(name) is \(isQuoted ? "quoted" : "not quoted")"
            }
            values[name] = value
        }
        self.breach = breach
        self.values = values
    }

    subscript(name: String) -> String? { values[name] }

    /// The proof that a right answer holds; with an empty method, that of the server's own.
    func proof(_ rules: DigestArea.Rules, method: String, body: [UInt8]) -> String {
        let nonce = self["nonce"] ?? ""
        var key = hash("\(rules.user):\(rules.realm):\(rules.password)")
        if self["algorithm"]?.hasSuffix("-sess") == true { key = hash("\(key):\(nonce):\(self["cnonce"] ?? "")") }
        var request = "\(method):\(self["uri"] ?? "")"
        guard let protection = rules.protection else { return hash("\(key):\(nonce):\(hash(request))") }
        if protection == "auth-int" { request += ":\(hash(body))" }
        return hash("\(key):\(nonce):\(self["nc"] ?? ""):\(self["cnonce"] ?? ""):\(protection):\(hash(request))")
    }

    /// The hash by the answer's algorithm, in hexadecimal digits.
    func hash(_ text: String) -> String { hash(Array(text.utf8)) }

    private func hash(_ bytes: [UInt8]) -> String {
        guard self["algorithm"]?.hasPrefix("MD5") == true else { return sha256(bytes) }
        return Insecure.MD5.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
