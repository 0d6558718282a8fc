// BullMQ: `worker run|noop` works; `producer` adds what it is told on stdin: "one"
// adds a message with the time, "fill N TEXT" adds N.  Each line is answered.
const { Queue, Worker } = require('bullmq');
const { execFile } = require('child_process');
const readline = require('readline');
const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_PORT),
  maxRetriesPerRequest: null };
const options = { removeOnComplete: true, removeOnFail: true };

function run(job) {
  return new Promise((resolve, reject) => {
    const child = execFile(process.env.BENCH_STAMP, [process.env.BENCH_STAMPS],
      (error) => (error ? reject(error) : resolve()));
    child.stdin.end(job.data.text);
  });
}

async function produce() {
  const queue = new Queue('bench', { connection });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, n, text] = line.split(' ');
    if (verb === 'one') {
      await queue.add('m', { text: `${process.hrtime.bigint()} ${n}` }, options);
    } else {
      for (let left = Number(n); left > 0; left -= 1000) {
        await queue.addBulk(Array.from({ length: Math.min(left, 1000) },
          () => ({ name: 'm', data: { text }, opts: options })));
      }
    }
    console.log('ok');
  }
}

if (process.argv[2] === 'producer') {
  produce().then(() => process.exit(0));
} else {
  const job = process.argv[3] === 'run' ? run : async () => {};
  new Worker('bench', job, { connection, concurrency: 8 });
}
