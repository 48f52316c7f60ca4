import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
	ControllerSchema,
	Phase,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { expect, it } from "vitest";
import { showControllers } from "./controllers.ts";

const plain = { width: undefined, color: false };

async function table(...controllers: readonly MessageInitShape<typeof ControllerSchema>[]) {
	const messages = controllers.map((each) =>
		create(ControllerSchema, {
			...{ manages: "demo.v1.Artist", placement: Placement.SINGLETON, phase: Phase.RUNNING },
			...each,
		}),
	);
	return (await showControllers(messages, "table", plain)).trimEnd().split("\n");
}

it("shows no column for troubles that no controller has", async () => {
	const [heading, ...rows] = await table({ name: "one" }, { name: "two" });
	expect(heading).toMatch(/LAST-ERROR$/);
	expect(rows).toHaveLength(2);
});

it("shows which reconcile runs longest, and for how long", async () => {
	const [heading, well, slow] = await table(
		{ name: "well" },
		{
			name: "slow",
			stillRunning: [
				{ key: "default/miles", running: durationFromMs(180_000) },
				{ key: "default/nina", running: durationFromMs(61_000) },
			],
		},
	);
	expect(heading).toMatch(/LAST-ERROR +STILL-RUNNING$/);
	expect(well).not.toContain("miles");
	expect(slow).toContain("2 (default/miles for 3m)");
});

it("shows on which servers they run, and how much of a sharded one this server does", async () => {
	const [, ...rows] = await table(
		{ name: "single" },
		{ name: "every", placement: Placement.EACH_SERVER },
		{ name: "part", placement: Placement.SHARDED, shards: { open: [1, 4, 9], count: 16 } },
		{ name: "alone", placement: Placement.SHARDED },
	);
	const shown = ["one server", "each server", "3 of 16 shards", "all shards"];
	expect(rows.map((row, at) => row.includes(shown[at] ?? ""))).toEqual(shown.map(() => true));
});

it("shows what earlier runs have left behind", async () => {
	const [, row] = await table({ name: "stuck", overdue: ["default/miles"] });
	expect(row).toContain("1 (default/miles)");
});

it("shows how many resources can't be decoded, and why one of them can't", async () => {
	const [heading, row] = await table({
		name: "blind",
		undecodable: { count: 12, errors: ["demo.v1.Artist miles can't be decoded: malformed"] },
	});
	expect(heading).toMatch(/LAST-ERROR +UNDECODABLE$/);
	expect(row).toContain("12 (demo.v1.Artist miles can't be decoded: malformed)");
});
