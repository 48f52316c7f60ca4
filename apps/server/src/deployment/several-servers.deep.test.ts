import { create } from "@bufbuild/protobuf";
import { Deployment, ResourceShadow } from "@plinth/db-constraint";
import { decodeShared, idOf, referenceTo, resourceOf, tenancyOf, typeOf } from "@plinth/resource";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { artist, Tour, toursModule } from "../../testdata/music.ts";
import type { Server } from "../server.ts";
import { type MusicProcess, startMusic } from "./music-process.fixture.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

const patiently = { timeout: 300_000, interval: 50 };

/** The addresses of the servers, as the storage records them: announced ones, and direct ones where these are others. */
async function endpoints({ client }: MusicProcess): Promise<readonly string[]> {
	const { resources } = await client.list({
		type: typeOf(ResourceShadow.type),
		tenancy: tenancyOf(),
	});
	return resources
		.flatMap((resource) => {
			const { record } = decodeShared(ResourceShadow, resource).data;
			return record.case === "endpoint"
				? [`${record.value.address} ${record.value.directAddress}`.trim()]
				: [];
		})
		.sort();
}

async function registeredAddress(meta: Server): Promise<string> {
	const { resource } = await meta.client.read({ id: idOf(Deployment, "music-r1") });
	return resource === undefined ? "" : decodeShared(Deployment, resource).data.address;
}

/** References an artist of the deployment `music-r1`. */
function tour(name: string, of: string) {
	const target = artist(of).id;
	return resourceOf(Tour, {
		id: idOf(Tour, name),
		data: create(TourSchema, { ...(target && { artist: referenceTo(target) }) }),
	});
}

describeWith("etcd")("a deployment of several servers", () => {
	it("is found by others whichever of them is killed, and without the meta deployment", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const file = credentialFile();
		const meta = await startDeployment("meta", file);
		const [one, two] = await Promise.all([
			startMusic(etcd, { metaAddress: meta.internal, file }),
			startMusic(etcd, { metaAddress: meta.internal, file }),
		]);
		const tours = await startDeployment("tours", file, {
			metaAddresses: [meta.internal],
			modules: [toursModule()],
		});
		const book = async (name: string) => {
			const { resource } = await tours.server.client.write({ resource: tour(name, "miles") });
			return resource?.id?.name;
		};
		await one.client.write({ resource: artist("miles") });
		await expect.poll(() => endpoints(one), patiently).toEqual([one.internal, two.internal].sort());
		expect(await book("with-both")).toBe("with-both");

		const isFirst = (await registeredAddress(meta.server)) === one.internal;
		const [killed, left] = isFirst ? [one, two] : [two, one];
		killed.server.kill("SIGKILL");
		await killed.server.ended;
		expect(await book("with-one")).toBe("with-one");
		await expect.poll(() => endpoints(left), patiently).toEqual([left.internal]);
		await expect.poll(() => registeredAddress(meta.server), patiently).toBe(left.internal);

		const next = await startMusic(etcd, { metaAddress: meta.internal, file });
		await expect
			.poll(() => endpoints(next), patiently)
			.toEqual([left.internal, next.internal].sort());
		expect(await book("with-the-next")).toBe("with-the-next");
		await meta.server.stop();
		left.server.kill("SIGKILL");
		await left.server.ended;
		expect(await book("with-the-next-alone")).toBe("with-the-next-alone");
	});

	it("has a direct address for each of those that are behind one address", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const file = credentialFile();
		const { server, internal: metaAddress } = await startDeployment("meta", file);
		const address = "http://balancer.example:7576";
		const [one, two] = await Promise.all([
			startMusic(etcd, { metaAddress, file, address }),
			startMusic(etcd, { metaAddress, file, address }),
		]);
		const both = [one, two].map(({ internal }) => `${address} ${internal}`).sort();
		await expect.poll(() => endpoints(one), patiently).toEqual(both);
		expect(await registeredAddress(server)).toBe(address);
		two.server.kill("SIGKILL");
		await two.server.ended;
		await expect.poll(() => endpoints(one), patiently).toEqual([`${address} ${one.internal}`]);
		expect(await registeredAddress(server)).toBe(address);
	});
});
