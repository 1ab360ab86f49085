// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import HTTPTypes
import HTTPWire
import Secrets

@testable import ChallengeClient
@testable import Proxy

// Heads as they come, and as they go on.
extension MicroBenchmark {
    private static let request = Array(
        """
        GET /adapters/bank/balance?account=4711&currency=EUR HTTP/1.1\r
        Host: localhost:8080\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r
        Accept-Language: en-US,en;q=0.5\r
        Accept-Encoding: gzip, deflate, br\r
        Connection: keep-alive\r
        Cookie: theme=dark; basket=9b1d3c7e\r
        X-Request-Id: 1f0c2b5a-7d8e-4a9b-b0c1-d2e3f4a5b6c7\r
        \r\n
        """.utf8)

    private static let response = Array(
        """
        HTTP/1.1 200 OK\r
        Date: Sat, 21 Nov 2026 16:00:00 GMT\r
        Server: nginx/1.22.1\r
        Content-Type: application/json; charset=utf-8\r
        Content-Length: 65\r
        Connection: keep-alive\r
        Cache-Control: no-store\r
        ETag: "5f9c1a-41"\r
        X-Request-Id: 1f0c2b5a-7d8e-4a9b-b0c1-d2e3f4a5b6c7\r
        \r\n
        """.utf8)

    static let heads = [
        MicroBenchmark(name: "parse a request's head") {
            var parser = RequestHeadParser()
            return {
                parser.reset()
                guard case .complete = parser.parse(request.span) else { preconditionFailure("it is whole") }
            }
        },
        MicroBenchmark(name: "parse a response's head") {
            var scanner = ResponseHeadScanner()
            return {
                do { try scanner.scan(response.span) } catch { preconditionFailure("it is right") }
            }
        },
        MicroBenchmark(name: "rewrite a request's head") {
            var parser = RequestHeadParser()
            _ = parser.parse(request.span)
            let sessions = SessionFields([
                InjectedField(name: .authorization, value: Secret("Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"))
            ])
            let authority = Array("bank.example:8443".utf8)
            let fields = FieldSink()
            var output = ByteQueue()
            return {
                ForwardedRequest.write(
                    parser.head, in: request.span, authority: authority, overriddenBy: sessions, to: fields)
                sessions.write(into: fields)
                fields.take(into: &output)
                output.removeAll()
            }
        },
        MicroBenchmark(name: "rewrite a response's head") {
            var scanner = ResponseHeadScanner()
            try scanner.scan(response.span)
            var forwarded = ForwardedResponse()
            var output = ByteQueue()
            return {
                forwarded.reset(isHead: false, version: .http11)
                _ = forwarded.writeHead(
                    scanner.head, in: response.span, keepsAlive: true, to: &output, date: { "" }, addresses: { nil })
                output.removeAll()
            }
        },
    ]
}
