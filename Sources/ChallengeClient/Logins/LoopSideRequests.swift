// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Curl
internal import EventLoop

/// The side requests of a conversation, by libcurl on a worker's loop.
///
/// A secret leaves only for an origin that the configuration names; redirects are never followed.
package struct LoopSideRequests: SideRequests {
    private let loop: EventLoop
    private let driver: LoopBound<CurlDriver>
    private let plan: UpstreamPlan

    /// Side requests in the name of the upstream of `plan`; to be made on the loop's thread.
    package init(runtime: ClientRuntime, plan: UpstreamPlan) {
        loop = runtime.loop
        driver = LoopBound(runtime.driver, to: runtime.loop)
        self.plan = plan
    }

    /// Sends `request` on the worker's loop, from whatever executor the conversation runs on.
    package func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        guard plan.loginOrigins.contains(request.url.origin) else {
            throw SideRequestError(
                .originNotAllowed,
                reason: "\(request.url.origin) is no origin that the configuration of upstream \(plan.name) names")
        }
        guard plan.connections.mayCarrySecrets(to: request.url.origin) else {
            throw SideRequestError(
                .originNotAllowed,
                reason: "\(request.url.origin) is another machine, and the request would go there in the clear")
        }
        let result: Result<SideResponse, SideRequestError> = await withCheckedContinuation { continuation in
            loop.execute {
                SideTransfer.start(request, plan: plan, driver: driver.value) { continuation.resume(returning: $0) }
            }
        }
        return try result.get()
    }
}
