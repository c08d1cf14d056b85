//! Misuse: every method in circumstances that do not fit. Each call ends in an error that tells why, and changes nothing, or in
//! the right answer.

use super::model::{Family, Modelled};
use super::upserts::Combining;
use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary::{Dictionary, Ordered, Updatable};
use gpu_primitives::monoid::Sum;
use gpu_primitives::{CpuOptions, Device, DeviceVec, Error, Stream};
use std::fmt::{self, Debug, Formatter};

type Both<F> = Modelled<F, u32, u32>;

/// Reads the answer to a query.
type Answer = Box<dyn FnOnce(&Stream) -> Result<Vec<u64>, Error>>;

/// Calls a method with these operands.
type CallOf<F> = fn(&mut <F as Family>::Of<u32, u32>, &Stream, &[DeviceVec<u32>]) -> Result<Answer, Error>;

/// A method, which takes up to three operands.
struct Method<F: Family> {
    name: &'static str,
    operands: usize,
    call: CallOf<F>,
}

impl<F: Family> Debug for Method<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The answer of a method that only changes the dictionary.
fn nothing() -> Answer {
    Box::new(|_| Ok(vec![]))
}

fn number(number: usize) -> Answer {
    Box::new(move |_| Ok(vec![number as u64]))
}

fn methods<F: Family>() -> Vec<Method<F>> {
    vec![
        Method {
            name: "bulk_build",
            operands: 2,
            call: |dictionary, stream, operands| {
                *dictionary = Dictionary::bulk_build(stream, (&operands[0], &operands[1]), F::options(16))?;
                Ok(nothing())
            },
        },
        Method {
            name: "insert",
            operands: 2,
            call: |dictionary, stream, operands| {
                dictionary.insert(stream, (&operands[0], &operands[1])).map(|()| nothing())
            },
        },
        Method {
            name: "update",
            operands: 3,
            call: |dictionary, stream, operands| {
                dictionary.update(stream, (&operands[0], &operands[1]), &operands[2]).map(|()| nothing())
            },
        },
        Method {
            name: "delete",
            operands: 1,
            call: |dictionary, stream, operands| dictionary.delete(stream, &operands[0]).map(|()| nothing()),
        },
        Method {
            name: "clear",
            operands: 0,
            call: |dictionary, stream, _| dictionary.clear(stream).map(|()| nothing()),
        },
        Method {
            name: "tidying up",
            operands: 0,
            call: |dictionary, stream, _| F::tidy(dictionary, stream).map(|()| nothing()),
        },
        Method {
            name: "lookup",
            operands: 1,
            call: |dictionary, stream, operands| {
                let found = dictionary.lookup(stream, &operands[0])?;
                Ok(Box::new(move |stream| {
                    let values = found.to_vec(stream)?.into_iter();
                    Ok(values.map(|value| value.map_or(u64::MAX, u64::from)).collect())
                }))
            },
        },
        Method {
            name: "contains",
            operands: 1,
            call: |dictionary, stream, operands| {
                let found = dictionary.contains(stream, &operands[0])?;
                Ok(Box::new(move |stream| Ok(found.to_vec(stream)?.into_iter().map(u64::from).collect())))
            },
        },
        Method { name: "len", operands: 0, call: |dictionary, stream, _| dictionary.len(stream).map(number) },
        Method {
            name: "is_empty",
            operands: 0,
            call: |dictionary, stream, _| dictionary.is_empty(stream).map(|is_empty| number(is_empty.into())),
        },
        Method {
            name: "stats",
            operands: 0,
            call: |dictionary, stream, _| dictionary.stats(stream).map(|_| nothing()),
        },
        Method {
            name: "export",
            operands: 0,
            call: |dictionary, stream, _| {
                let contents = dictionary.export(stream)?;
                Ok(Box::new(move |stream| {
                    let pairs = contents.to_vec(stream)?.into_iter();
                    Ok(pairs.flat_map(|(key, value)| [key, value].map(u64::from)).collect())
                }))
            },
        },
        Method {
            name: "save and load",
            operands: 0,
            call: |dictionary, stream, _| {
                let mut file = Vec::new();
                dictionary.save(stream, &mut file)?;
                *dictionary = Dictionary::load(stream, &file[..])?;
                Ok(nothing())
            },
        },
        Method {
            name: "try_clone",
            operands: 0,
            call: |dictionary, stream, _| {
                let copy = dictionary.try_clone(stream)?;
                // A recorded copy reads the dictionary when it is launched.
                let original = std::mem::replace(dictionary, copy);
                Ok(Box::new(move |_| {
                    drop(original);
                    Ok(Vec::new())
                }))
            },
        },
    ]
}

fn ordered_methods<F: Family<Of<u32, u32>: Ordered>>() -> Vec<Method<F>> {
    vec![
        Method {
            name: "count",
            operands: 2,
            call: |dictionary, stream, operands| {
                let counts = dictionary.count(stream, &operands[0], &operands[1])?;
                Ok(Box::new(move |stream| counts.to_vec(stream)))
            },
        },
        Method {
            name: "range",
            operands: 2,
            call: |dictionary, stream, operands| {
                let ranges = dictionary.range(stream, &operands[0], &operands[1])?;
                Ok(Box::new(move |stream| {
                    let pairs = ranges.to_vec(stream)?.into_iter().flatten();
                    Ok(pairs.flat_map(|(key, value)| [key, value].map(u64::from)).collect())
                }))
            },
        },
        Method {
            name: "reduce",
            operands: 2,
            call: |dictionary, stream, operands| {
                let sums = dictionary.reduce(stream, &operands[0], &operands[1], Sum)?;
                Ok(Box::new(move |stream| Ok(sums.to_vec(stream)?.into_iter().map(u64::from).collect())))
            },
        },
        Method {
            name: "successor",
            operands: 1,
            call: |dictionary, stream, operands| {
                let found = dictionary.successor(stream, &operands[0])?;
                Ok(Box::new(move |stream| Ok(neighbours(found.to_vec(stream)?))))
            },
        },
        Method {
            name: "predecessor",
            operands: 1,
            call: |dictionary, stream, operands| {
                let found = dictionary.predecessor(stream, &operands[0])?;
                Ok(Box::new(move |stream| Ok(neighbours(found.to_vec(stream)?))))
            },
        },
    ]
}

fn neighbours(found: Vec<Option<(u32, u32)>>) -> Vec<u64> {
    let none = (u64::MAX, u64::MAX);
    let numbers = |pair: Option<(u32, u32)>| pair.map_or(none, |(key, value)| (key.into(), value.into()));
    found.into_iter().map(numbers).flat_map(|(key, value)| [key, value]).collect()
}

fn upserts<F: Combining>() -> Vec<Method<F>> {
    vec![Method {
        name: "upsert",
        operands: 2,
        call: |dictionary, stream, operands| {
            F::upsert(dictionary, stream, (&operands[0], &operands[1]), Sum).map(|()| nothing())
        },
    }]
}

/// The operands that fit: keys or the beginnings of intervals, values or their ends, other keys.
fn operands() -> [Vec<u32>; 3] {
    [
        (0..40).map(|i| i * 3 % 100).collect(),
        (0..40).map(|i| i * 3 % 100 + 7).collect(),
        (0..9).map(|i| 5 * i).collect(),
    ]
}

fn upload(stream: &Stream, operands: &[Vec<u32>]) -> Vec<DeviceVec<u32>> {
    operands.iter().map(|operand| stream.upload(operand).unwrap()).collect()
}

/// Returns a dictionary with some insertions and deletions.
fn dictionary<F: Family>(stream: &Stream) -> Both<F> {
    let mut both = Both::<F>::new(stream, 16);
    for batch in 0..3 {
        let keys: Vec<u32> = (0..16).map(|i| (7 * i + 5 * batch) % 120).collect();
        both.update(stream, &keys, &keys, &[batch, 7 * batch]);
    }
    both
}

/// What a call leaves behind: its answer, and the contents of the dictionary.
type Outcome = (Result<Vec<u64>, Error>, Vec<(u32, u32)>);

fn outcome<F: Family>(dictionary: &F::Of<u32, u32>, stream: &Stream, answer: Result<Answer, Error>) -> Outcome {
    let answer = answer.and_then(|read| read(stream));
    (answer, dictionary.export(stream).unwrap().to_vec(stream).unwrap())
}

/// Calls methods in all circumstances.
struct Misuse<F: Family> {
    /// A device with the dictionary that the methods are called on.
    stream: Stream,
    both: Both<F>,
    before: Vec<(u32, u32)>,
    /// Another device, and the same dictionary there.
    elsewhere: Stream,
    reference: Both<F>,
}

impl<F: Family> Misuse<F> {
    fn new(device: &Device) -> Self {
        // Kernels that are simulated are compared with native bodies, and the other way round.
        let simulated = !is_gpu(device) && !is_checked(device);
        let elsewhere = Device::cpu_with(CpuOptions { simulated, ..CpuOptions::default() }).stream().unwrap();
        let (stream, reference) = (device.stream().unwrap(), dictionary(&elsewhere));
        let both: Both<F> = dictionary(&stream);
        let before = both.dictionary.export(&stream).unwrap().to_vec(&stream).unwrap();
        Self { stream, both, before, elsewhere, reference }
    }

    /// What a method should do.
    fn expected(&self, method: &Method<F>, operands: &[Vec<u32>]) -> Outcome {
        let mut dictionary = self.reference.copy(&self.elsewhere).dictionary;
        let answer = (method.call)(&mut dictionary, &self.elsewhere, &upload(&self.elsewhere, operands));
        outcome::<F>(&dictionary, &self.elsewhere, answer)
    }

    #[track_caller]
    fn check(&self, (found, after): &Outcome, (expected, expected_after): &Outcome, when: &str) {
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!((found, after), (expected, expected_after), "{when}"),
            (Err(Error::LengthMismatch { .. }), Err(Error::LengthMismatch { .. })) => {
                assert_eq!(after, &self.before, "{when}: the dictionary has changed");
            }
            _ => panic!("{when}: {found:?} instead of {expected:?}"),
        }
    }

    /// Operands that are one element too short, one too long, or empty.
    fn lengths(&self, method: &Method<F>) {
        let right = &operands()[..method.operands];
        let mut all = vec![right.to_vec()];
        for i in 0..method.operands {
            let long = [&right[i][..], &[3]].concat();
            for wrong in [right[i][1..].to_vec(), long, vec![]] {
                let mut operands = right.to_vec();
                operands[i] = wrong;
                all.push(operands);
            }
        }
        for operands in all {
            let lengths: Vec<usize> = operands.iter().map(Vec::len).collect();
            let when = format!("{method:?} with operands of {lengths:?} elements");
            let mut dictionary = self.both.copy(&self.stream).dictionary;
            let answer = (method.call)(&mut dictionary, &self.stream, &upload(&self.stream, &operands));
            let found = outcome::<F>(&dictionary, &self.stream, answer);
            self.check(&found, &self.expected(method, &operands), &when);
        }
    }

    /// Operands of one stream, a dictionary of another, a call on a third and a question on a fourth.
    fn streams(&self, method: &Method<F>) {
        let [a, b, c] = [(); 3].map(|()| self.stream.device().stream().unwrap());
        let right = &operands()[..method.operands];
        let mut dictionary = self.both.copy(&self.stream).dictionary;
        let answer = (method.call)(&mut dictionary, &b, &upload(&a, right));
        let found = outcome::<F>(&dictionary, &c, answer);
        self.check(&found, &self.expected(method, right), &format!("{method:?} on another stream"));
    }

    /// One operand after the other of another device, and then the stream.
    fn devices(&self, method: &Method<F>) {
        let right = &operands()[..method.operands];
        for stranger in 0..=method.operands {
            let when = format!("{method:?} with a stranger at {stranger}");
            let home = |i: usize| if i == stranger { &self.elsewhere } else { &self.stream };
            let on_device: Vec<_> =
                right.iter().enumerate().map(|(i, operand)| home(i).upload(operand).unwrap()).collect();
            let mut dictionary = self.both.copy(&self.stream).dictionary;
            let stream = home(method.operands);
            match (method.call)(&mut dictionary, stream, &on_device).and_then(|read| read(stream)) {
                Err(Error::WrongDevice { .. }) => {}
                // The host has the answer, or there is nothing on the device.
                Ok(_) if method.operands == 0 => continue,
                other => panic!("{when}: {other:?}"),
            }
            let after = dictionary.export(&self.stream).unwrap().to_vec(&self.stream).unwrap();
            assert_eq!(after, self.before, "{when}: the dictionary has changed");
        }
    }

    /// A method is recorded and acts when the graph is launched, or it cannot be recorded and does nothing.
    fn recording(&self, method: &Method<F>) {
        let when = format!("{method:?} in a recording");
        let right = &operands()[..method.operands];
        let on_device = upload(&self.stream, right);
        // The second time, what a first query builds is there.
        for is_built in [false, true] {
            let mut dictionary = self.both.copy(&self.stream).dictionary;
            if is_built {
                dictionary.contains(&self.stream, &self.stream.upload(&[1]).unwrap()).unwrap();
            }
            let recorded = self.stream.capture(|recorder| (method.call)(&mut dictionary, recorder, &on_device));
            match recorded {
                Ok((mut graph, answer)) => {
                    // SAFETY: the dictionary and the operands still exist, and are used only on this stream.
                    unsafe { graph.launch(&self.stream).unwrap() };
                    let found = outcome::<F>(&dictionary, &self.stream, Ok(answer));
                    self.check(&found, &self.expected(method, right), &when);
                }
                Err(Error::NotRecordable { .. }) => {
                    let after = dictionary.export(&self.stream).unwrap().to_vec(&self.stream).unwrap();
                    assert_eq!(after, self.before, "{when}: the dictionary has changed");
                }
                Err(error) => panic!("{when}: {error}"),
            }
        }
    }

    fn all(self, methods: &[Method<F>]) {
        for method in methods {
            self.lengths(method);
            self.streams(method);
            self.devices(method);
            self.recording(method);
        }
        assert_eq!(self.both.dictionary.export(&self.stream).unwrap().to_vec(&self.stream).unwrap(), self.before);
    }
}

pub fn misused_methods<F: Family>(device: &Device) {
    Misuse::<F>::new(device).all(&methods());
}

pub fn misused_ordered_methods<F: Family<Of<u32, u32>: Ordered>>(device: &Device) {
    Misuse::<F>::new(device).all(&ordered_methods());
}

pub fn misused_upserts<F: Combining>(device: &Device) {
    Misuse::<F>::new(device).all(&upserts());
}

/// Two threads call all methods on copies of a dictionary, in opposite orders: on one stream, and on one stream each.
pub fn methods_from_two_threads<F: Family<Of<u32, u32>: Send + Sync>>(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let both = dictionary::<F>(&a);
    let operands = operands();
    let outcomes = |stream: &Stream, is_backwards: bool| {
        let mut methods = methods::<F>();
        if is_backwards {
            methods.reverse();
        }
        let mut outcomes: Vec<_> = methods
            .iter()
            .map(|method| {
                let mut dictionary = both.dictionary.try_clone(stream).unwrap();
                let answer = (method.call)(&mut dictionary, stream, &upload(stream, &operands));
                let (answer, after) = outcome::<F>(&dictionary, stream, answer);
                (answer.unwrap_or_else(|error| panic!("{method:?}: {error}")), after)
            })
            .collect();
        if is_backwards {
            outcomes.reverse();
        }
        outcomes
    };
    let expected = outcomes(&a, false);
    for (first, second) in [(&a, &a), (&a, &b)] {
        let outcomes = &outcomes;
        let [forwards, backwards] = std::thread::scope(|scope| {
            let threads = [scope.spawn(move || outcomes(first, false)), scope.spawn(move || outcomes(second, true))];
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(forwards, expected, "forwards");
        assert_eq!(backwards, expected, "backwards");
    }
}
