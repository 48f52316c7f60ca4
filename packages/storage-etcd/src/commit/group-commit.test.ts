import { Exhausted } from "@plinth/storage";
import { putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { useEtcd } from "../use-etcd.fixture.ts";

describeWith("etcd")("commits that wait for etcd", () => {
	const etcd = useEtcd();

	it("are limited by their bytes, which are released when they have settled", async () => {
		const way = await etcd.proxy();
		const backend = await etcd
			.cluster()
			.backend({ endpoints: [way.url], requestTimeoutMs: 120_000 });
		way.block();
		const text = "x".repeat(1024 * 1024);
		const waiting = Array.from({ length: 63 }, (_, at) =>
			backend.commit([putArtist(`artist-${at}`, text)]),
		);
		const refused = backend.commit([putArtist("refused", text)]);
		await expect(refused).rejects.toThrow(Exhausted);
		await expect(refused).rejects.toThrow("67108864");
		const small = backend.commit([putArtist("small")]);
		way.unblock();
		await Promise.all([...waiting, small]);
		await backend.commit([putArtist("refused", text)]);
	});
});
