/** Who commits if the options of the commit don't say: the deployment itself. */
export const deploymentWriter = "deployment";
