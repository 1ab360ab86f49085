// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import Synchronization

/// Side requests whose responses are kept in memory, as evidence of one login. Requests' bodies are not kept.
final class RecordedRequests: SideRequests {
    /// A response, and if its request carried a body.
    struct Exchange: Sendable {
        let response: ExaminedResponse
        let hadBody: Bool
    }

    private static let limit = 64
    private let requests: any SideRequests
    private let report: @Sendable (String) -> Void
    private let recorded = Mutex<[Exchange]>([])

    /// Creates a recorder over `requests`. `report` gets each exchange as a line without queries.
    init(_ requests: any SideRequests, report: @escaping @Sendable (String) -> Void) {
        self.requests = requests
        self.report = report
    }

    /// The exchanges so far.
    var exchanges: [Exchange] { recorded.withLock { $0 } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let line = "\(request.method.rawValue) \(request.url.origin)\(request.url.path)"
        do throws(SideRequestError) {
            let answer = try await requests.send(request)
            report("\(line): \(answer.status)")
            let response = ExaminedResponse(answer, method: request.method, url: request.url)
            recorded.withLock { recorded in
                guard recorded.count < Self.limit else { return }
                recorded.append(Exchange(response: response, hadBody: request.body != nil))
            }
            return answer
        } catch {
            report("\(line): no answer, \(error.reason)")
            throw error
        }
    }
}
