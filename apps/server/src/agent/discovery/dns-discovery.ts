import type { ServerTarget } from "@plinth/forwarding";
import type { Timer } from "@plinth/runtime";
import { type Discovery, type DiscoveryContext, maxDiscovered } from "./discovery.ts";
import type { DnsSource } from "./discovery-source.ts";
import { FoundServers } from "./found-servers.ts";
import type { Resolver } from "./resolver.ts";

/** The pause between two lookups, in milliseconds, and the part of it that is random. */
const pauseMs = 5_000;
const jitter = 0.4;

/**
 * Looks the servers up in DNS, again every few seconds. A lookup that fails or finds nothing changes nothing, and is logged
 * once until one succeeds.
 *
 * Invariant: until `close`, either a lookup runs or the timer for the next one is set.
 */
export function discoverByDns(source: DnsSource, context: DiscoveryContext): Discovery {
	const { clock, random, logger, resolver } = context;
	const found = new FoundServers(source.text, context);
	let isClosed = false;
	let timer: Timer | undefined;
	let looking: Promise<void> | undefined;

	const look = async () => {
		timer?.cancel();
		try {
			const targets = await targetsOf(source, resolver);
			if (isClosed) {
				return;
			}
			const hadFailed = found.status.problem !== "";
			found.apply(targets);
			if (hadFailed) {
				logger.info({ source: source.text }, "servers are found again");
			}
		} catch (failure) {
			const hadFailed = found.status.problem !== "";
			found.failed(failure);
			const { problem, servers } = found.status;
			if (!hadFailed && !isClosed) {
				logger.warn(
					{ source: source.text, problem, servers },
					"no servers were found: those from before are used",
				);
			}
		}
		if (!isClosed) {
			const delayMs = pauseMs * (1 - jitter / 2 + jitter * random.next());
			timer = clock.setTimer(delayMs, () => void check());
		}
	};
	const check = () => {
		looking ??= look().finally(() => {
			looking = undefined;
		});
		return looking;
	};

	void check();
	return {
		status: () => found.status,
		check,
		close() {
			isClosed = true;
			timer?.cancel();
		},
	};
}

/** @throws Error that says why there are none. */
async function targetsOf(source: DnsSource, resolver: Resolver): Promise<readonly ServerTarget[]> {
	const targets = source.hasServices
		? await targetsOfServices(source, resolver)
		: await targetsOfAddresses(source, resolver);
	const distinct = new Map(targets.map((target) => [target.address, target]));
	if (distinct.size === 0) {
		throw new Error(`${source.name} has no addresses`);
	}
	if (distinct.size > maxDiscovered) {
		throw new Error(
			`${source.name} has ${distinct.size} addresses: an agent forwards to at most ${maxDiscovered} servers`,
		);
	}
	return [...distinct.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

/** Their certificates must have the name that was looked up. */
async function targetsOfAddresses(
	{ scheme, name, port }: DnsSource,
	resolver: Resolver,
): Promise<readonly ServerTarget[]> {
	const addresses = await resolver.addresses(name);
	return addresses.flatMap((address) => {
		const url = urlOf(scheme, address.includes(":") ? `[${address}]` : address, port);
		return url === undefined
			? []
			: [{ address: url, ...(scheme === "https" && { certificateName: name }) }];
	});
}

/** The certificate of each must have the name of its host. */
async function targetsOfServices(
	{ scheme, name }: DnsSource,
	resolver: Resolver,
): Promise<readonly ServerTarget[]> {
	const services = await resolver.services(name);
	return services.flatMap(({ host, port }) => {
		const url = urlOf(scheme, host.replace(/\.$/, ""), port);
		return url === undefined ? [] : [{ address: url }];
	});
}

/** What can't be a URL is left out, such as an IPv6 address with a zone. */
function urlOf(scheme: string, host: string, port: number): string | undefined {
	const url = `${scheme}://${host}:${port}`;
	const isServer =
		URL.canParse(url) && new URL(url).pathname === "/" && new URL(url).username === "";
	return isServer ? url : undefined;
}
