import type { ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import type { TypeLike } from "@plinth/resource";
import type { FakeClock } from "@plinth/runtime/testing";
import { describe, it } from "vitest";
import type { Controller } from "../define/controller.ts";
import type { SeenWatch } from "../fake-service.fixture.ts";
import type { ControllerState } from "../manager/controller-state.ts";
import type { Gate } from "../stalls.fixture.ts";

/** The service that the controllers of a bench call, and what users do there. */
export interface BenchService {
	/** The watches that the controllers have opened, in that order. */
	readonly watches: readonly Readonly<SeenWatch>[];
	/** Writes, bypassing all stalls and failures. */
	put(resource: Resource): Resource | Promise<Resource>;
	/** Deletes, bypassing all stalls and failures. */
	remove(id: ID): unknown;
	stored(id: ID): Resource | undefined | Promise<Resource | undefined>;
	/**
	 * Blocks calls: `snapshot demo.v1.Artist`, `live demo.v1.Artist` (events of open watches),
	 * `ack Write` (after the commit) or `call Write`.
	 */
	shut(what: string): Gate;
	/** Makes the next call fail: `snapshot demo.v1.Artist`, `resume demo.v1.Artist` or `call Write`. */
	failNext(what: string, error: ConnectError): void;
	/** Ends the open watches of a type with an error. */
	breakWatches(type: string): void;
	/** Sends an event of an unknown kind to the open watches of a type. */
	sendUnknown(type: TypeLike): void;
	/** Has a bookmark sent to the open watches of a type, after the events that they have not received yet. */
	bookmark(type: TypeLike): void;
}

/** Controllers that run on a fake clock, and call a service. */
export interface Bench extends AsyncDisposable {
	readonly service: BenchService;
	/** The clock of the controllers alone. */
	readonly clock: FakeClock;
	/** Starts the controllers, and waits until nothing can proceed without time or input. */
	start(controllers: readonly Controller[]): Promise<unknown>;
	/** Waits until everything has been done that needs neither time nor input. */
	settle(): Promise<void>;
	/** Lets time pass, and everything be done that can be done then. */
	advance(byMs: number): Promise<void>;
	/** Stops the controllers; resolves when everything has ended. */
	stop(): Promise<void>;
	state(controller: string): ControllerState;
	/** What the controllers have logged. */
	messages(level: string): readonly string[];
}

/** A test of controllers that does not depend on how they reach their service. */
export interface Scenario {
	readonly name: string;
	/** Rejects if the controllers do not behave as its name says. */
	readonly run: (bench: Bench) => Promise<void>;
}

/** Scenarios on one subject. */
export interface Suite {
	readonly title: string;
	readonly scenarios: readonly Scenario[];
}

export function scenario(name: string, run: Scenario["run"]): Scenario {
	return { name, run };
}

/** Declares the tests of a suite. */
export function declareSuite(
	{ title, scenarios }: Suite,
	check: (run: Scenario["run"]) => Promise<void>,
): void {
	describe(title, () => {
		for (const { name, run } of scenarios) {
			it(name, () => check(run));
		}
	});
}

/** Runs a scenario on a bench of its own. */
export async function runOn(bench: Bench, run: Scenario["run"]): Promise<void> {
	await using used = bench;
	await run(used);
}
