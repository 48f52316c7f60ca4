/**
 * What deployments of this release and of the previous one send each other. The messages of each version of the protocol
 * that is spoken are recorded in `testdata/exchanges`, by the scenario of this folder. A change after which this code no
 * longer understands an older deployment, or sends what that does not understand, fails here.
 *
 * With a release: if it raises `protocolVersions.newest`, record its exchanges, as `record.fixture.ts` says, and delete
 * those of versions that are no longer spoken. Otherwise, record them again if it adds fields, so that the next release
 * keeps them. What was recorded of an earlier release never changes: copy the scenario to its code to record that again.
 */
import { readdirSync, readFileSync } from "node:fs";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { describe, expect, it } from "vitest";
import { Lab } from "../lab/lab.fixture.ts";
import { protocolVersions } from "../protocol/protocol-versions.ts";
import { planDeletion } from "./plan.fixture.ts";
import { type RecordedSide, ReplayedExchanges } from "./replayed-exchanges.fixture.ts";
import { runScenario } from "./scenario.fixture.ts";

const folder = new URL("../../testdata/exchanges/", import.meta.url);
const versions = Array.from(
	{ length: protocolVersions.newest - protocolVersions.oldest + 1 },
	(_, at) => protocolVersions.oldest + at,
);

function recorded(version: number) {
	return JSON.parse(readFileSync(new URL(`version-${version}.json`, folder), "utf8"));
}

const sides: readonly RecordedSide[] = ["client", "server"];

describe.for(versions)("deployments that speak version %i of the protocol", (version) => {
	it.for(sides)("as the %s are understood", async (side) => {
		const exchanges = recorded(version);
		const replayed = new ReplayedExchanges(exchanges, side);
		const plan = version > 1 ? planDeletion : undefined;
		const note = (name: string, uid: string) => replayed.note(name, uid);
		const lab = new Lab(1, {}, replayed.decorate);
		const outcome = await runScenario(lab, note, plan);
		expect(replayed.problems).toEqual([]);
		expect(outcome).toEqual({
			refusal:
				"alpha.Thing default/default/a (r1) can't be deleted: it is referenced by beta.Widget default/default/needy (r1) of beta in r1",
			hasB: false,
			hasC: false,
			hasOwned: false,
			isConfirmed: true,
			isHeldAgain: ["beta"],
		});
		const methods = new Set(exchanges.exchanges.map(({ method }: { method: string }) => method));
		expect([...replayed.methods].sort()).toEqual([...methods].sort());
	});
});

/** Not between the two deployments of the scenario. */
const notRecorded = [
	// Between the servers of one deployment. One that lacks it gets the deletion with the next query of its holders.
	"ForwardDeletions",
	// To a meta deployment that was restored: `restored-meta.test.ts`.
	"ReportRegistry",
];

it("each version that is spoken is recorded, and the newest one with every method", () => {
	const files = versions.map((version) => `version-${version}.json`);
	expect(readdirSync(folder).sort()).toEqual(files.sort());
	const { exchanges } = recorded(protocolVersions.newest);
	const methods = new Set(exchanges.map(({ method }: { method: string }) => method));
	const expected = SchemaMixinService.methods.map(({ name }) => name);
	expect([...methods, ...notRecorded].sort()).toEqual(expected.sort());
});
