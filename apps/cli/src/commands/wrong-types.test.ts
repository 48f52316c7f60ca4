import { clearExtension, clone, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { reference } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType } from "@plinth/resource";
import { expect, it } from "vitest";
import { ScreeningSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Screening } from "../cinema.fixture.ts";
import { startMeta, there, writeScreening } from "../restored-cinemas.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

/** The type of an earlier release, in which `film` may name anything. */
function screeningBefore() {
	const { file } = ScreeningSchema;
	const proto = clone(FileDescriptorProtoSchema, file.proto);
	const fields = proto.messageType.find(({ name }) => name === "Screening")?.field ?? [];
	for (const { name, options } of fields) {
		if (name === "film" && options !== undefined) {
			clearExtension(options, reference);
		}
	}
	const schema = createFileRegistry(proto, (path) =>
		file.dependencies.find(({ proto: { name } }) => name === path),
	).getMessage(ScreeningSchema.typeName);
	if (schema === undefined) {
		throw new Error("the changed file lacks the type");
	}
	return defineType(schema);
}

it("deployments says what a field names instead of a target, from before it was a reference", async () => {
	const { folder, start } = await startMeta();
	await start("r1");
	const storage = { kind: "sqlite", directory: folder } as const;
	const before = await start("r2", { storage, types: [Film, screeningBefore()] });
	await writeScreening(before, "odd", { film: there(Screening, "first") });
	await before.stop();
	const { address } = await start("r2", { storage });
	const describe = async () =>
		(await runPlinth(["deployments", "cinema-r1", "--server", address])).out;
	await expect
		.poll(describe, { timeout: 300_000 })
		.toMatch(
			/^cinema.Screening default\/default\/odd in r2 +film +cinema.Film default\/default\/first in r1 +block +\d+s +names a cinema\.v1\.Screening$/m,
		);
});
