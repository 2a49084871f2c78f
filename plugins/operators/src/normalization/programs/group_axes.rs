//! What a normalization by the tensor's own statistics looks at: groups of elements that have a mean and a variance, or a length,
//! of their own.
//!
//! ```text
//! nn.layer_norm      x[2, 3, 4], axes = [2]            [2, 3, 4]       groups of the last axis
//! nn.group_norm      x[2, 6, 5, 5], num_groups = 3     [2, 3, 2, 5, 5] groups of all axes but the first two
//! nn.instance_norm   x[2, 6, 5, 5]                     [2, 6, 1, 5, 5] the same
//! nn.l2_normalize    x[2, 3, 4], axis = [1]            [2, 3, 4]       groups of the axis in the middle
//! ```

/// The groups of a call, as a shape of which each axis lies within the groups or counts them. It is that of the data, with the
/// axis of the channels divided into groups and the channels of one.
#[derive(Clone, Debug)]
pub(crate) struct GroupAxes<E> {
    /// The shape.
    pub(crate) shape: Vec<E>,
    /// Whether each of its axes lies within the groups.
    pub(crate) is_inner: Vec<bool>,
    /// The axes that scale and shift run over.
    pub(crate) params: Vec<usize>,
    /// The axis of the data that is two axes of the shape.
    pub(crate) divided: Option<usize>,
}

impl<E: Copy> GroupAxes<E> {
    /// GroupAxes of the elements along axes.
    pub(crate) fn along(shape: &[E], axes: &[i64]) -> Self {
        let rank = shape.len() as i64;
        let wrap = |&axis: &i64| axis.rem_euclid(rank.max(1)) as usize;
        let axes: Vec<usize> = axes.iter().map(wrap).collect();
        let is_inner = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
        Self { shape: shape.to_vec(), is_inner, params: axes, divided: None }
    }

    /// GroupAxes of channels: so many as `split` divides the extent of their axis into, with the channels of one.
    pub(crate) fn of_channels(shape: &[E], channel: i64, split: impl FnOnce(E) -> [E; 2]) -> Self {
        let channel = channel.rem_euclid((shape.len() as i64).max(1)) as usize;
        let [groups, each] = split(shape[channel]);
        let mut split = shape.to_vec();
        split[channel] = groups;
        split.insert(channel + 1, each);
        let is_inner = (0..split.len()).map(|axis| axis != 0 && axis != channel).collect();
        let params = vec![channel, channel + 1];
        Self { shape: split, is_inner, params, divided: Some(channel) }
    }

    /// The extents of the axes that lie within the groups, or that count them.
    pub(crate) fn extents(&self, inner: bool) -> Vec<E> {
        self.pick(&self.shape, inner)
    }

    /// Of one thing for each axis, those for the axes that lie within the groups, or that count them.
    pub(crate) fn pick<T: Copy>(&self, each: &[T], inner: bool) -> Vec<T> {
        self.axes(inner).into_iter().map(|axis| each[axis]).collect()
    }

    /// The numbers of the axes that lie within the groups, or that count them.
    pub(crate) fn axes(&self, inner: bool) -> Vec<usize> {
        (0..self.shape.len()).filter(|&axis| self.is_inner[axis] == inner).collect()
    }
}
