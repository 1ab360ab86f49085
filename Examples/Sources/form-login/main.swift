// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// The form-based sample of MobileFirst 7.1: `j_security_check`, with a wrong password first.

import ChallengeClient
import ClientExamples
import HTTPTypes
import Samples

let client = try ChallengeClient()
try client.registerChallengeHandler(FormHandler { again in ("ann", again ? "demo" : "wrong") })
let response = try await client.send(to: "\(Sample.server)/form/orders?page=2")
let body = try await response.text(upTo: 10_000)
Sample.check(response.status == .ok && body.contains("page=2"), "the form is filled in, again after a wrong password")
await client.shutdown()

let nobody = try ChallengeClient()
try nobody.registerChallengeHandler(FormHandler { _ in nil })
let failure = await Sample.failure { _ = try await nobody.send(to: "\(Sample.server)/form/orders") }
Sample.check(failure?.detail == "Nobody logged in.", "submitFailure: \(failure?.detail ?? "served")")
await nobody.shutdown()
