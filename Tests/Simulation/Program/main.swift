// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

SimulationCommand.run(CommandLine.arguments)
