/** Where packages are published. */
export interface Registry {
	/** Whether this version of a package is published. */
	has(name: string, version: string): Promise<boolean>;
	publish(tarball: string): Promise<void>;
}

/** A package that is ready to be published. */
export interface Ready {
	readonly name: string;
	readonly version: string;
	readonly tarball: string;
}

/**
 * Publishes packages in the given order, and skips those whose version is published: after a failure in the middle, the
 * same call goes on where it stopped.
 *
 * @param report - called with a line for each package.
 */
export async function publishAll(
	packages: readonly Ready[],
	registry: Registry,
	report: (line: string) => void,
): Promise<void> {
	for (const { name, version, tarball } of packages) {
		if (await registry.has(name, version)) {
			report(`${name} ${version} is published already`);
			continue;
		}
		await registry.publish(tarball);
		report(`${name} ${version} published`);
	}
}
