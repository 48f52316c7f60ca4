/**
 * A hook of `pnpm pack`, which `packAll` names: adds what a package.json of the workspace does not say to that of the
 * tarball.
 */
const repositories = JSON.parse(process.env.PLINTH_REPOSITORIES ?? "{}");

export const hooks = {
	beforePacking: (manifest) => ({ ...manifest, ...repositories[manifest.name] }),
};
