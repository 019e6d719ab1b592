// Typed arrays, strings, a worker and a child: prints what must be the same wherever the memory is from.
const crypto = require('crypto');
const {Worker, isMainThread, parentPort, workerData} = require('worker_threads');
const {execFileSync} = require('child_process');

function numbers(seed, count) {
    const all = new Float64Array(count);
    for (let i = 0, state = seed; i < count; i++) {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        all[i] = state;
    }
    return all.sort();
}

const digest = (data) => crypto.createHash('sha256').update(data).digest('hex');

if (isMainThread) {
    for (let round = 0; round < 2; round++)
        console.log(digest(Buffer.from(numbers(round, 2000000).buffer)));
    const objects = [];
    for (let i = 0; i < 200000; i++)
        objects.push({i, text: 'x' + (i * 7919) % 1000003});
    objects.sort((a, b) => a.text < b.text ? -1 : a.text > b.text ? 1 : a.i - b.i);
    console.log(digest(JSON.stringify(objects)));
    console.log(digest(Buffer.alloc(100 << 20)));
    console.log(execFileSync('/bin/echo', ['from a child']).toString());
    const worker = new Worker(__filename, {workerData: 77});
    worker.on('message', (text) => console.log(text));
} else {
    parentPort.postMessage(digest(Buffer.from(numbers(workerData, 3000000).buffer)));
}
