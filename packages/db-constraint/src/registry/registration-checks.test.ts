import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { seededRuntime } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import type { FollowedRegistry } from "./followed-registry.ts";
import { Deployment } from "./meta-types.ts";
import type { OwnRegistration } from "./own-registration.ts";
import { RegistrationChecks } from "./registration-checks.ts";

/** A deployment that is registered with a meta deployment which lacks it, and which some calls do not reach. */
function forgotten() {
	const runtime = seededRuntime({ seed: 1 });
	const registrar = { address: "meta-r1" };
	const meta = resourceOf(Deployment, {
		id: { ...idOf(Deployment, "meta-r1"), uid: "meta" },
		data: create(DeploymentSchema, { service: "meta", region: "r1" }),
	});
	const calls: string[] = [];
	const state = { isRegistered: false, failing: 0 };
	const registration = {
		...{ result: { registered: { uid: "own" }, registrar }, self: { uid: "own" } },
		...{ state: { kind: "registered" }, own: undefined },
		giveBackTo: async () => {
			calls.push("give back");
			state.isRegistered = true;
		},
		registerAgain: async (servers: readonly unknown[]) => {
			calls.push("register again");
			if (state.failing > 0) {
				state.failing -= 1;
				throw new ConnectError("the request was lost", Code.Unavailable);
			}
			if (servers.length > 0 && !state.isRegistered) {
				throw new ConnectError("meta-r1 has no Deployment own", Code.NotFound);
			}
		},
	};
	const registry = {
		hasDeletionRecord: async () => false,
		sources: { isRead: () => true, serversWith: () => [registrar] },
		view: {
			successorOf: () => undefined,
			deploymentsAt: () => [meta],
			deployments: () => new Map(state.isRegistered ? [["own", {}]] : []),
		},
	};
	const checks = new RegistrationChecks({
		registration: registration as unknown as OwnRegistration,
		registry: registry as unknown as FollowedRegistry,
		...{ isMeta: false, runtime, logger: silentLogger, end: new AbortController().signal },
	});
	return { runtime, checks, state, calls };
}

describe("a deployment that a meta deployment has forgotten", () => {
	it("gives itself back, and registers again until that succeeds", async () => {
		const { runtime, checks, state, calls } = forgotten();
		state.failing = 2;
		checks.begin();
		await runtime.scheduler.advance(60_000);
		expect(calls).toEqual(["give back", ...Array(3).fill("register again")]);
	});

	it("gives it back again if a restore takes that back before it has registered again", async () => {
		const { runtime, checks, state, calls } = forgotten();
		state.failing = 1;
		checks.begin();
		await runtime.scheduler.advance(0);
		expect(calls.splice(0)).toEqual(["give back", "register again"]);
		state.isRegistered = false;
		await runtime.scheduler.advance(60_000);
		expect(calls).toEqual(["give back", "register again"]);
	});
});
