import { describe, expect, it } from "vitest";
import type { Behaviour } from "./behaviour.fixture.ts";
import { cancellationBehaviours } from "./cancellation.fixture.ts";
import { errorBehaviours } from "./errors.fixture.ts";
import { interceptorBehaviours } from "./interceptors.fixture.ts";
import {
	bidiBehaviours,
	clientStreamBehaviours,
	serverStreamBehaviours,
} from "./streams.fixture.ts";
import {
	connectOverSocket,
	grpcOverSocket,
	inProcess,
	type Side,
	shufflingScheduler,
} from "./transports.fixture.ts";
import { unaryBehaviours } from "./unary.fixture.ts";

const behaviours = {
	"unary calls": unaryBehaviours,
	errors: errorBehaviours,
	cancellation: cancellationBehaviours,
	interceptors: interceptorBehaviours,
	"server streams": serverStreamBehaviours,
	"client streams": clientStreamBehaviours,
	"streams both ways": bidiBehaviours,
};

const sides: readonly Side[] = [
	inProcess("in-process", () => undefined),
	...[1, 2, 3].map((seed) =>
		inProcess(`in-process, shuffled by ${seed}`, () => shufflingScheduler(seed)),
	),
	grpcOverSocket,
	connectOverSocket,
];

describe.each(sides)("the transport $name", (side) => {
	describe.each(Object.entries(behaviours))("%s", (_, table) => {
		it.each(table)("$does", async (behaviour) => {
			const { connect, close } = side.open();
			try {
				expect(await behaviour.play(connect)).toEqual(expectedOn(side, behaviour));
			} finally {
				await close();
			}
		});
	});
});

function expectedOn(side: Side, { outcome, accident }: Behaviour): unknown {
	if (accident === undefined || side.kind === "in-process") {
		return outcome;
	}
	return accident.on === "every wire" || accident.on === side.kind ? accident.outcome : outcome;
}
