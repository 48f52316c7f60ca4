/** What the tests of other packages use. Not published. */
export { contentOf, Good, good, privatePrefix } from "./simulation/goods.fixture.ts";
export { withFault } from "./simulation/planted-faults.fixture.ts";
