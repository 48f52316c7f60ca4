import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { EtcdClient } from "./client/etcd-client.ts";
import { createEtcdBackend, type EtcdBackend, type EtcdBackendOptions } from "./etcd-backend.ts";
import { EtcdProcess } from "./etcd-process.fixture.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import { TcpProxy } from "./tcp-proxy.fixture.ts";

/** The etcd of the tests of one `describe`. What a test opens through it closes when the test has finished. */
export interface TestEtcd {
	/** Its URL; available in tests and hooks. */
	readonly url: string;
	/** A new cluster of servers, under a prefix of its own. */
	cluster(): TestCluster;
	/** A connection to etcd that can be cut or blocked. */
	proxy(): Promise<TcpProxy>;
	/** Writes to etcd as no server of a cluster would. */
	client(): EtcdClient;
}

/** The servers of one cluster: each call opens one more. */
export interface TestCluster {
	readonly prefix: string;
	backend(options?: Partial<EtcdBackendOptions>): Promise<EtcdBackend>;
	leases(url?: string, ttlSeconds?: number): EtcdLeases;
}

/** Starts an etcd before the tests of this `describe`, and disposes of it after them. */
export function useEtcd(): TestEtcd {
	let etcd: EtcdProcess | undefined;
	beforeAll(async () => {
		etcd = await EtcdProcess.start();
	});
	afterAll(() => etcd?.dispose());
	const url = () => {
		if (etcd === undefined) {
			throw new Error("etcd runs only in tests and hooks");
		}
		return etcd.url;
	};
	return {
		get url() {
			return url();
		},
		cluster: () => clusterOf(url()),
		async proxy() {
			const proxy = await TcpProxy.to(url());
			onTestFinished(() => proxy.dispose());
			return proxy;
		},
		client() {
			const client = new EtcdClient({ endpoints: [url()] });
			onTestFinished(() => client.close());
			return client;
		},
	};
}

function clusterOf(url: string): TestCluster {
	const prefix = `/${randomUUID()}`;
	return {
		prefix,
		async backend(options = {}) {
			const backend = await createEtcdBackend({ endpoints: [url], prefix, ...options });
			onTestFinished(() => backend.close());
			return backend;
		},
		leases(throughUrl = url, ttlSeconds = 2) {
			const leases = new EtcdLeases({ endpoints: [throughUrl], prefix, ttlSeconds });
			onTestFinished(() => leases.close());
			return leases;
		},
	};
}
