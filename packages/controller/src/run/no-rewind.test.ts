import { TestBench } from "../running-manager.fixture.ts";
import { clientOfReconcile, noRewind } from "../suite/no-rewind.fixture.ts";
import { declareSuite, runOn } from "../suite/scenario.fixture.ts";

declareSuite(noRewind, (run) => runOn(new TestBench(), run));
declareSuite(clientOfReconcile, (run) => runOn(new TestBench(), run));
