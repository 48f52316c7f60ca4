import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ResourceShadow } from "@plinth/db-constraint";
import { idOf, referenceTo, resourceOf, tenancyOf, typeOf } from "@plinth/resource";
import { expect, it, onTestFinished, vi } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import type { Server } from "../server.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

function tour(name: string) {
	const data = create(TourSchema, {
		artist: referenceTo({ type: Artist.type, name: "a" }),
	});
	return resourceOf(Tour, { id: idOf(Tour, name), data });
}

async function outdatedSeconds({ address }: Server): Promise<number> {
	const text = await (await fetch(`${address}/metrics`)).text();
	return Number(/^plinth_reference_registry_outdated_seconds (\S+)/m.exec(text)?.[1]);
}

it("serves and takes references to another one when it is restarted without the meta deployment", async () => {
	const directory = mkdtempSync(join(tmpdir(), "plinth-without-meta-"));
	onTestFinished(() => rmSync(directory, { recursive: true }));
	const file = credentialFile();
	const meta = await startDeployment("meta", file);
	const metaAddresses = [meta.internal];
	const music = await startDeployment("music", file, { metaAddresses, modules: [musicModule()] });
	await music.server.client.write({ resource: resourceOf(Artist, { id: idOf(Artist, "a") }) });
	const storage = { kind: "sqlite", directory } as const;
	const options = { metaAddresses, modules: [toursModule()], storage };
	const before = await startDeployment("tours", file, options);
	await before.server.client.write({ resource: tour("first") });
	await vi.waitFor(async () => expect(await outdatedSeconds(before.server)).toBe(0), {
		timeout: 300_000,
	});
	await vi.waitFor(
		async () => {
			const { resources } = await before.server.client.list({
				type: typeOf(ResourceShadow.type),
				tenancy: tenancyOf(),
				namePrefix: "registry",
			});
			expect(resources.length).toBeGreaterThan(3);
		},
		{ timeout: 300_000 },
	);
	await before.server.stop();
	await meta.server.stop();
	const after = await startDeployment("tours", file, options);
	await after.server.client.write({ resource: tour("second") });
	expect(await outdatedSeconds(after.server)).toBeGreaterThan(0);
	await expect(music.server.client.delete({ id: idOf(Artist, "a") })).rejects.toThrow(
		"it is referenced by",
	);
});
