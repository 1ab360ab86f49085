// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc

/// A sample program: its server, and its checks.
@MainActor
public enum Sample {
    /// The address of the demonstration's server, the only argument: `http://127.0.0.1:8081`.
    public static var server: String {
        guard CommandLine.arguments.count == 2 else {
            print("usage: \(CommandLine.arguments.first ?? "") http://127.0.0.1:8081, of countersign demo")
            exit(64)
        }
        return CommandLine.arguments[1]
    }

    /// Ends the program unless the condition is met.
    public static func check(_ isMet: Bool, _ words: String) {
        print("\(isMet ? "ok    " : "FAILED") \(words)")
        if !isMet { exit(1) }
    }

    /// Returns the failure of a request that must fail, `nil` if it succeeds.
    public static func failure(_ body: () async throws -> Void) async -> ClientError? {
        do { try await body() } catch { return error as? ClientError }
        return nil
    }
}
