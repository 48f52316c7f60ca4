export { CountedEventLoop } from "./counted-event-loop.ts";
export { FakeClock, type FakeClockOptions } from "./fake-clock.ts";
export { SeededEventLoop, type SeededEventLoopOptions } from "./seeded-event-loop.ts";
export { seededRandom } from "./seeded-random.ts";
export { type SeededRuntime, seededRuntime } from "./seeded-runtime.ts";
export { SeededScheduler, type SeededSchedulerOptions } from "./seeded-scheduler.ts";
export { type Skew, SkewedClock } from "./skewed-clock.ts";
