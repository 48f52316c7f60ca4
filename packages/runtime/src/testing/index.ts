export { FakeClock } from "./fake-clock.ts";
export { seededRandom } from "./seeded-random.ts";
