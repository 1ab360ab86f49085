// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One request of a caller, and the condition for its answer.
struct Order {
    let number: Int
    let server: SimulatedServer
    var method = "GET"
    /// Path and query as the caller writes them, below the proxy.
    var target: String
    var body: [UInt8] = []
    var isChunked = false
    var expectsContinue = false
    /// A cookie of the caller's own.
    var cookie: String?
    /// Cookies that pages set, before that one.
    var cookiesBeside = ""
    var acceptsGzip = false
    /// True if another line of cookies follows.
    var hasSecondCookie = false
    /// True if it asks for another protocol, which no server here speaks, and its first bytes follow already.
    var isUpgrade = false
    /// True if its body comes in small pieces.
    var isSlow = false
    /// A list of addresses that the caller names.
    var forwardedFor: String?
    /// Trailers that must not reach the server.
    var trailers: [String] = []
    /// True if every caller is forbidden to use its address.
    var isForbidden = false
    /// True if the value of its credential had been accepted when it began.
    var wasAccepted = false
    /// Fields that must not reach the server.
    var extras: [String] = []
    /// The name of the caller, if it has a token.
    var caller: String?
    /// The time at which it began, in ms since 1970.
    var began: Int64 = 0
    /// The connections at rest that its server had ended when it began.
    var restEndsBefore = 0

    /// Creates an order of `number`.
    init(_ number: Int, to server: SimulatedServer, using chance: inout Chance, weather: Weather) {
        self.number = number
        self.server = server
        var kind = chance.below(20)
        if kind > 16, server.protection.isGuestbookOpen { kind = 3 }
        isForbidden = weather.hasRefusals && ([0, 5, 6, 7].contains(kind) || weather.hasManyRefusals && kind > 13)
        let isFickle = kind == 2 && server.protection is DigestProtection
        let isOpen = kind == 1 && weather.hasStrangers
        let folder =
            isForbidden
            ? "forbidden"
            : isFickle ? "fickle" : isOpen ? "open" : kind == 3 ? "guest" : kind == 4 ? "rest" : "r"
        let place = server.protection.prefix + "/\(folder)"
        target = "\(place)/\(number)"
        // Begins like a path that is routed elsewhere.
        if folder == "r", place == "/r", chance.oneIn(8) { target = "/privately/\(number)" }
        // If only callers' addresses show the login page, most of them must be usable for a login.
        switch server.protection.isFoundByCallers && !chance.oneIn(4) ? 4 + chance.below(8) : chance.below(12) {
        case 0, 1, 2: target = "\(place)/deep;x/\(number)"
        case 3: target = "\(place)//\(number)"
        case 4, 5: target += "?q=\(number)"
        default: break
        }
        let isPolling = server.isPolled && folder == "r" && chance.oneIn(2)
        let isShared = folder != "guest" && folder != "rest" && chance.below(3) < (isForbidden ? 2 : 1)
        if isPolling || isShared {
            let resource = isPolling ? 0 : chance.below(SharedResources.count)
            target = SharedResources.target(resource, in: place, for: number)
            if server.resources.isOpen(resource, now: server.simulation.now) { isForbidden = false }
        }
        if isFickle { isForbidden = true }
        method = ["GET", "GET", "GET", "HEAD", "POST", "POST", "PUT"][chance.below(7)]
        if isPolling { method = "GET" }
        if method == "POST" || method == "PUT" {
            let size = [0, 1, 100, 3_000, 5_000, 40_000][chance.below(6)]
            body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
            isChunked = chance.oneIn(3)
            expectsContinue = size > 0 && chance.oneIn(6)
            isSlow = size < 10_000 && chance.oneIn(6)
        }
        if chance.oneIn(4) {
            cookie = "caller\(number)"
            // Cookies set by pages; a session may hold different ones.
            cookiesBeside = chance.pick([
                "", "csrftokenold=x; XSRF-TOKEN2=y; ", "csrftoken=own; XSRF-TOKEN=o%3Dn; ",
                "XSRF-TOKEN=a%0D%0AX-Planted:%201; ",
            ])
        }
        acceptsGzip = chance.oneIn(3)
        hasSecondCookie = chance.oneIn(8)
        isUpgrade = method == "GET" && chance.oneIn(12)
        if chance.oneIn(8) { forwardedFor = "192.0.2.\(number % 256)" }
        if isChunked {
            trailers = [
                "X_Forwarded_For: 192.0.2.1", "Content_Length: 7", "X_Api_Key: forged", "X-Api-Key: forged", "X-Hop: 1",
            ]
            .filter { _ in chance.oneIn(3) }
        }
        if chance.oneIn(3) {
            extras = [
                "X-Hop: 1\r\nConnection: X-Hop\r\n", "Content_Length: 7\r\n", "Transfer_Encoding: chunked\r\n",
                "X_Api_Key: forged\r\n", "X-Api-Key: forged\r\n", "Keep-Alive: timeout=5\r\nConnection: keep-alive\r\n",
                "Proxy-Connection: keep-alive\r\n", "TE: gzip\r\nConnection: TE\r\n",
                "Accept-Encoding: br, gzip;q=0.5\r\n", "X_Forwarded_Proto: https\r\n",
            ].filter { _ in chance.oneIn(3) }
        }
    }

    /// True if its address is one that guests write to.
    var isGuests: Bool { target.hasPrefix("/guest/") }

    /// True if it changes nothing (RFC 9110 §9.2.1).
    var isRead: Bool { method == "GET" || method == "HEAD" }

    /// True if each nonce is too old at its address.
    var isFickle: Bool { target.hasPrefix("/fickle/") }

    /// True if it may be carried out again after a lost connection (RFC 9110 §9.2.2).
    var isIdempotent: Bool { method != "POST" }

    /// Returns the request on the caller's connection.
    func bytes(host: String, chance: inout Chance) -> [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\nX-Order: \(number)\r\n"
        if let cookie { text += "Cookie: \(cookiesBeside)mine=\(cookie)\r\n" }
        if hasSecondCookie { text += "Cookie: second=\(number)\r\n" }
        if acceptsGzip { text += "Accept-Encoding: gzip, br\r\n" }
        if let forwardedFor { text += "X-Forwarded-For: \(forwardedFor)\r\n" }
        if isUpgrade { text += "Connection: Upgrade\r\nUpgrade: websocket\r\n" }
        for extra in extras { text += extra }
        if trailers.contains("X-Hop: 1") { text += "Connection: X-Hop\r\n" }
        if expectsContinue { text += "Expect: 100-continue\r\n" }
        if isChunked {
            text += "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            var bytes = Array(text.utf8)
            var rest = body[...]
            while !rest.isEmpty {
                let piece = rest.prefix(chance.pick(1...max(1, rest.count)))
                rest = rest.dropFirst(piece.count)
                bytes += Array("\(String(piece.count, radix: 16))\r\n".utf8) + Array(piece) + [13, 10]
            }
            let lines = trailers.map { "\($0)\r\n" }.joined()
            return bytes + Array("0\r\nX-Sum: \(number)\r\n\(lines)\r\n".utf8)
        }
        if method == "POST" || method == "PUT" { text += "Content-Length: \(body.count)\r\n" }
        return Array((text + "\r\n").utf8) + body + (isUpgrade ? Array(Trespass.smuggled.utf8) : [])
    }

    /// The body of its answer.
    var answerBody: [UInt8] {
        let size = [10, 10, 10, 2_000, 70_000][number % 5]
        return Array("answer \(number) ".utf8) + (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }
    }

    /// Returns the answer of a server that carries it out.
    func answer(closes chance: inout Chance) -> ServerAnswer {
        var answer = ServerAnswer(200, [("Content-Type", "application/octet-stream"), ("X-Answer", "\(number)")])
        answer.body = answerBody
        answer.framing = ServerAnswer.Framing.allCases[chance.below(3)]
        answer.closes = answer.framing == .untilClose || chance.oneIn(5)
        if number % 7 == 0 {
            answer.status = 201
            answer.fields.append(("Location", "http://\(server.authority)/base/made/\(number)"))
        }
        if cookie != nil { answer.fields.append(("Set-Cookie", "mine=again\(number); Path=/base/")) }
        return answer
    }
}
