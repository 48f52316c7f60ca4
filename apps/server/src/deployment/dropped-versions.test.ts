import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Deployment } from "@plinth/db-constraint";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { expect, it, onTestFinished } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import { clientAs } from "../callers.fixture.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

const artist = resourceOf(Artist, { id: idOf(Artist, "a") });

function tour(name: string) {
	const data = create(TourSchema, { artist: referenceTo({ type: Artist.type, name: "a" }) });
	return resourceOf(Tour, { id: idOf(Tour, name), data });
}

it("does not start without a version that another deployment references, unless it is told to", async () => {
	const directory = mkdtempSync(join(tmpdir(), "plinth-dropped-versions-"));
	onTestFinished(() => rmSync(directory, { recursive: true }));
	const file = credentialFile();
	const meta = await startDeployment("meta", file);
	const metaAddresses = [meta.internal];
	const options = { metaAddresses, storage: { kind: "sqlite", directory } } as const;
	const withArtists = { ...options, modules: [musicModule()] };
	const music = await startDeployment("music", file, withArtists);
	const tours = await startDeployment("tours", file, { metaAddresses, modules: [toursModule()] });
	await music.server.client.write({ resource: artist });
	await tours.server.client.write({ resource: tour("first") });
	await music.server.stop();

	await expect(startDeployment("music", file, options)).rejects.toThrow(
		/music in r1 has served: music\.v1\.Artist, which is referenced by tours in r1 \(.+\)\. Update these deployments first, or start this server with --drop-versions-in-use/,
	);
	const again = await startDeployment("music", file, withArtists);
	await tours.server.client.write({ resource: tour("second") });
	await again.server.stop();

	const without = await startDeployment("music", file, { ...options, dropsVersionsInUse: true });
	await expect(clientAs(tours.server, "anyone").write({ resource: tour("third") })).rejects.toThrow(
		"music in r1 does not serve music.v1.Artist",
	);
	await without.server.stop();
	const restored = await startDeployment("music", file, withArtists);
	await expect(restored.server.client.delete({ id: idOf(Artist, "a") })).rejects.toThrow(
		"it is referenced by",
	);
	await restored.server.stop();

	// The deployment is deleted while no server of this one runs.
	await tours.server.stop();
	await meta.server.client.delete({ id: idOf(Deployment, "tours-r1") });
	await startDeployment("music", file, options);
});
